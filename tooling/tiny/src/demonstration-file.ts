/**
 * The fixture format of recorded demonstrations: gzipped JSON lines, a header first.
 */
import { readFile, writeFile } from "node:fs/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Message, ToolDefinition, Trajectory } from "@gimbal-rl/core";
import type { DeskHabit } from "@gimbal-rl/desk";

/** First line. */
export interface DemonstrationHeader {
  readonly format: 1;
  readonly harness: string;
  readonly harnessVersion: string;
  /** sha256 of the tokenizer and template that the ids belong to. */
  readonly tokenizer: string;
  readonly template: string;
  /** Seed and split of the tasks. */
  readonly split: string;
  readonly seed: number;
  readonly tools: readonly ToolDefinition[];
}

/** One recorded run. */
export interface Demonstration {
  readonly taskId: string;
  readonly family: string;
  /** How the expert worked. */
  readonly habit: DeskHabit;
  readonly sandboxLevel: string;
  /** The whole conversation, the last assistant turn included. */
  readonly messages: readonly Message[];
  readonly trajectory: Trajectory;
}

/** Writes a set; sorted by task, so that the order of finishing does not show. */
export async function writeDemonstrations(
  path: string,
  header: DemonstrationHeader,
  demonstrations: readonly Demonstration[],
): Promise<void> {
  const sorted = [...demonstrations].sort((a, b) => (a.taskId < b.taskId ? -1 : 1));
  const lines = [header, ...sorted].map((line) => JSON.stringify(line));
  await writeFile(path, gzipSync(`${lines.join("\n")}\n`, { level: 9 }));
}

/** Reads a set. */
export async function readDemonstrations(
  path: string,
): Promise<{ readonly header: DemonstrationHeader; readonly demonstrations: Demonstration[] }> {
  const [header, ...lines] = gunzipSync(await readFile(path))
    .toString("utf8")
    .trimEnd()
    .split("\n");
  return {
    header: JSON.parse(header ?? "") as DemonstrationHeader,
    demonstrations: lines.map((line) => JSON.parse(line) as Demonstration),
  };
}
