/**
 * Building blocks shared by the families that work on `conf/*.ini`.
 */
import type { Draw } from "../draw.js";
import { settingsText } from "../text-lines.js";

/** A fresh path in a folder. */
export function freshPath(draw: Draw, folder: string, extension: string): string {
  return `${folder}/${draw.word()}.${extension}`;
}

/** A settings file that holds the given line among others. */
export function settingsWith(
  draw: Draw,
  key: string,
  value: string,
  others: number,
): (readonly [key: string, value: string])[] {
  const lines: (readonly [string, string])[] = [[key, value]];
  for (let i = 0; i < others; i += 1) lines.push([draw.word(), draw.value()]);
  return draw.shuffle(lines);
}

/** Settings files that matter to nobody. */
export function otherSettings(draw: Draw, count: number): Record<string, string> {
  const files: Record<string, string> = {};
  for (let i = 0; i < count; i += 1) {
    const lines = settingsWith(draw, draw.word(), draw.value(), draw.between(0, 2));
    files[freshPath(draw, "conf", "ini")] = settingsText(lines);
  }
  return files;
}

/** The same lines with one value replaced. */
export function replaceValue(
  lines: readonly (readonly [key: string, value: string])[],
  key: string,
  value: string,
): (readonly [key: string, value: string])[] {
  return lines.map((line) => (line[0] === key ? [key, value] : line));
}
