/**
 * Trains a run again from the groups it stored: no harness, no sampler, no model call.
 *
 * Law: from the same start, the stored groups and the settings decide the weights bit for bit, for any number of
 * threads.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createWasmBackend, loadPolicy } from "@gimbal-rl/compute";
import { GimbalError, throwIfAborted } from "@gimbal-rl/core";
import {
  type AttemptRecord,
  attemptEndKind,
  type CollectedGroup,
  type PlannedGroup,
} from "@gimbal-rl/rollout";
import { buildStepBatches, stepPlanKind } from "@gimbal-rl/run";
import { openStore } from "@gimbal-rl/store";
import { createTrainer, digestWeights, findCheckpoints } from "@gimbal-rl/trainer";
import { trainerSettings } from "./grpo-run.js";
import { readRunFolder } from "./run-manifest.js";

/** Options of {@link replayGrpoRun}. */
export interface ReplayOptions {
  readonly runDir: string;
  readonly threads: number;
  /** Model folder of the start. Default: the run's checkpoint 0. */
  readonly modelDir?: string;
}

/** What the replay gave. */
export interface ReplayResult {
  readonly steps: number;
  /** sha256 over the replayed weights. */
  readonly weights: string;
  /** sha256 over the run's last weights. */
  readonly expected: string;
  readonly isIdentical: boolean;
}

/**
 * Replays all finished steps of a run.
 * @throws {GimbalError} `not-found`, `checkpoint-invalid`, `store-corrupt`, `aborted`.
 */
export async function replayGrpoRun(
  options: ReplayOptions,
  signal: AbortSignal,
): Promise<ReplayResult> {
  const { runDir, threads } = options;
  const { manifest } = await readRunFolder(runDir);
  const checkpoints = await findCheckpoints(runDir);
  const first = checkpoints.at(0);
  const last = checkpoints.at(-1);
  if (first === undefined || last === undefined || first.step !== 0) {
    throw new GimbalError(
      "checkpoint-invalid",
      `${runDir} has no checkpoint of its start; nothing can be replayed. Run it first: gimbal train --resume ${runDir}`,
    );
  }
  const store = await openStore(runDir, { readOnly: true });
  const scratch = await mkdtemp(join(tmpdir(), "gimbal-replay-"));
  try {
    await using backend = await createWasmBackend({ threads });
    await using policy = await loadPolicy(options.modelDir ?? first.dir, backend);
    await using reference = await loadPolicy(options.modelDir ?? first.dir, backend);
    const trainer = await createTrainer({
      ...trainerSettings(manifest.config),
      policy,
      reference,
      runDir: scratch,
      retain: { last: 1 },
    });
    while (trainer.completedSteps() < last.step) {
      throwIfAborted(signal);
      const step = trainer.completedSteps() + 1;
      const planned = await store.get(stepPlanKind, String(step));
      if (planned === null)
        throw new GimbalError("store-corrupt", `Step ${step} has no plan in ${runDir}.`);
      const collected = await readGroups(planned.data as PlannedGroup[]);
      const { batches } = await buildStepBatches(
        collected,
        store,
        manifest.config,
        planned.sequence,
      );
      await trainer.step(batches);
    }
    const weights = await digestWeights(policy);
    await policy.load(last.dir, { optimizer: false });
    const expected = await digestWeights(policy);
    return { steps: last.step, weights, expected, isIdentical: weights === expected };
  } finally {
    await store.close();
    await rm(scratch, { recursive: true, force: true });
  }

  async function readGroups(plans: readonly PlannedGroup[]): Promise<CollectedGroup[]> {
    const groups: CollectedGroup[] = [];
    for (const plan of plans) {
      const records: AttemptRecord[] = [];
      for (const attempt of plan.attempts) {
        const event = await store.get(attemptEndKind, attempt.attemptId);
        if (event !== null) records.push(event.data as AttemptRecord);
      }
      groups.push({ plan, records, missing: plan.attempts.length - records.length });
    }
    return groups;
  }
}
