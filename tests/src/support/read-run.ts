/** What a finished run left behind, without anything that differs from machine to machine or from try to try. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type AttemptRecord, attemptEndKind, loadCalls } from "@gimbal-rl/rollout";
import { openStore } from "@gimbal-rl/store";
import { findCheckpoints } from "@gimbal-rl/trainer";

/** An attempt and the ids that its calls sampled. */
export interface ReadAttempt {
  readonly record: AttemptRecord;
  readonly sampledIds: readonly (readonly number[])[];
}

/** A run folder, read back. */
export interface ReadRun {
  /** By attempt id. */
  readonly attempts: ReadonlyMap<string, ReadAttempt>;
  /** Stored `attempt-end` events. */
  readonly attemptEvents: number;
  /** Lines of `metrics.jsonl`, times left out. */
  readonly metrics: readonly unknown[];
  /** sha256 of weights and of optimiser state, by step. */
  readonly checkpoints: readonly (readonly [step: number, weights: string, optimizer: string])[];
}

const sha256 = async (path: string): Promise<string> =>
  createHash("sha256")
    .update(await readFile(path))
    .digest("hex");

/** Reads a run folder that nothing writes to any more. */
export async function readRun(runDir: string): Promise<ReadRun> {
  const store = await openStore(runDir, { readOnly: true });
  const records: AttemptRecord[] = [];
  for await (const event of store.read({ kind: attemptEndKind })) {
    records.push(event.data as AttemptRecord);
  }
  const calls = await loadCalls(store, new Set(records.map(({ sessionId }) => sessionId)));
  await store.close();
  const attempts = records.map((record): [string, ReadAttempt] => {
    const sampledIds = (calls.get(record.sessionId) ?? []).map((call) => call.sampledIds);
    return [record.attempt.attemptId, { record, sampledIds }];
  });
  const lines = (await readFile(join(runDir, "metrics.jsonl"), "utf8")).trimEnd().split("\n");
  const checkpoints = (await findCheckpoints(runDir)).map(
    async ({ dir, step }) =>
      [
        step,
        await sha256(join(dir, "model.safetensors")),
        await sha256(join(dir, "optimizer.safetensors")),
      ] as const,
  );
  return {
    attempts: new Map(attempts),
    attemptEvents: records.length,
    metrics: lines.map((line) => {
      const { atMs: _, extra, seconds: __, ...rest } = JSON.parse(line) as Record<string, unknown>;
      const { seconds: ___, ...kept } = extra as Record<string, unknown>;
      return { ...rest, extra: kept };
    }),
    checkpoints: await Promise.all(checkpoints),
  };
}
