/**
 * Where a command's words go: results on stdout, everything else on stderr.
 *
 * Law: with `--json`, stdout holds exactly the JSON lines that the command documents and nothing else.
 */
import type { Clock } from "@gimbal-rl/core";
import { createProgress, type ProgressBar, type TextSink } from "./progress.js";

/** One command's output. */
export interface Output {
  readonly isJson: boolean;
  /** A line of progress or advice, on stderr. */
  line(text: string): void;
  /** A phase of work, on stderr. */
  bar(label: string, total: number): ProgressBar;
  /** The result for people, on stdout; nothing when `--json` was given. */
  text(text: string): void;
  /** The result for machines, one line on stdout; nothing without `--json`. */
  json(value: unknown): void;
  /** Ends a bar that is shown. */
  close(): void;
}

/** What an output is made from. */
export interface OutputOptions {
  readonly isJson: boolean;
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  readonly isTerminal: boolean;
  readonly columns: () => number;
  readonly clock: Clock;
}

/** Creates the output of one command. */
export function createOutput(options: OutputOptions): Output {
  const { clock, columns, isJson, isTerminal, stderr, stdout } = options;
  const progress = createProgress({ sink: stderr, isTerminal, columns, clock });
  return {
    isJson,
    line: progress.line,
    bar: progress.bar,
    text: (text) => {
      if (isJson) return;
      progress.close();
      stdout.write(text.endsWith("\n") ? text : `${text}\n`);
    },
    json: (value) => {
      if (!isJson) return;
      progress.close();
      stdout.write(`${JSON.stringify(value)}\n`);
    },
    close: progress.close,
  };
}

/** Rows as text columns, the first left-aligned and the rest right-aligned unless `left` names their index. */
export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  left: readonly number[] = [0],
): string {
  const all = [header, ...rows];
  const widths = header.map((_, i) => Math.max(...all.map((row) => row[i]?.length ?? 0)));
  const lines = all.map((row) =>
    widths
      .map((width, i) => {
        const cell = row[i] ?? "";
        return left.includes(i) ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  ")
      .trimEnd(),
  );
  return `${lines.join("\n")}\n`;
}
