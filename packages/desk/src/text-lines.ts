/**
 * The two line formats of the suite: `key=value` settings and `path:line:text` search results.
 */

/** The text of a settings file. */
export function settingsText(lines: readonly (readonly [key: string, value: string])[]): string {
  return lines.map(([key, value]) => `${key}=${value}\n`).join("");
}

/** The value of a key in a settings file; null when it has no such line. */
export function settingOf(text: string, key: string): string | null {
  const line = text.split("\n").find((one) => one.startsWith(`${key}=`));
  return line === undefined ? null : line.slice(key.length + 1);
}

/** A `grep -n` answer without the line numbers; text that has none stays as it is. */
export function withoutLineNumbers(text: string): string {
  return text.replace(/^\d+:/gm, "");
}

/** One line that `grep -rn` found. */
export interface FoundLine {
  readonly path: string;
  readonly text: string;
}

/** The lines of a `grep -rn` answer; other lines are skipped. */
export function foundLines(text: string): FoundLine[] {
  return text.split("\n").flatMap((line) => {
    const match = /^([^:\s]+):\d+:(.*)$/.exec(line);
    return match?.[1] === undefined || match[2] === undefined
      ? []
      : [{ path: match[1], text: match[2] }];
  });
}
