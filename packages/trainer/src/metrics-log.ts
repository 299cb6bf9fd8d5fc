/**
 * `metrics.jsonl`: one line a step.
 *
 * Law: whatever was killed when, after opening the log each finished step has exactly one line, and steps after the
 * checkpoint that the run resumes from have none.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { attributeError } from "@gimbal-rl/core";
import { appendFileSynced, isMissing, replaceFile } from "./durable-files.js";
import type { StepRecord } from "./step-record.js";

/** Path of a run's log. */
export function metricsPath(runDir: string): string {
  return join(runDir, "metrics.jsonl");
}

function parseLine(line: string): StepRecord | null {
  try {
    const value = JSON.parse(line) as Partial<StepRecord> | null;
    return typeof value?.step === "number" ? (value as StepRecord) : null;
  } catch {
    return null;
  }
}

async function readText(runDir: string): Promise<string> {
  try {
    return await readFile(metricsPath(runDir), "utf8");
  } catch (error) {
    if (isMissing(error)) return "";
    throw attributeError(error, "store-corrupt", "config", `Cannot read ${metricsPath(runDir)}`);
  }
}

/**
 * The records of a run in order of step; torn lines and repeats are passed over.
 * @example
 * const rewards = (await readMetrics(runDir)).map((record) => record.extra.reward);
 */
export async function readMetrics(runDir: string): Promise<readonly StepRecord[]> {
  const byStep = new Map<number, StepRecord>();
  for (const line of (await readText(runDir)).split("\n")) {
    const record = parseLine(line);
    if (record !== null && !byStep.has(record.step)) byStep.set(record.step, record);
  }
  return [...byStep.values()].sort((a, b) => a.step - b.step);
}

const toLine = (record: StepRecord): string => `${JSON.stringify(record)}\n`;

/**
 * Brings the log in line with the checkpoint that the run resumes from.
 * @param records - Records known from checkpoints; missing lines are written from them.
 */
export async function repairMetrics(
  runDir: string,
  lastStep: number,
  records: readonly StepRecord[],
): Promise<void> {
  const byStep = new Map([...records, ...(await readMetrics(runDir))].map((r) => [r.step, r]));
  const kept = [...byStep.values()]
    .filter((record) => record.step <= lastStep)
    .sort((a, b) => a.step - b.step);
  const text = kept.map(toLine).join("");
  if (text === (await readText(runDir))) return;
  try {
    await replaceFile(metricsPath(runDir), text);
  } catch (error) {
    throw attributeError(
      error,
      "store-unwritable",
      "config",
      `Cannot write ${metricsPath(runDir)}`,
    );
  }
}

/** Appends one record; it is on disk when this resolves. @throws {GimbalError} `store-unwritable`. */
export async function appendMetrics(runDir: string, record: StepRecord): Promise<void> {
  try {
    await appendFileSynced(metricsPath(runDir), toLine(record));
  } catch (error) {
    throw attributeError(
      error,
      "store-unwritable",
      "config",
      `Cannot write ${metricsPath(runDir)}`,
    );
  }
}
