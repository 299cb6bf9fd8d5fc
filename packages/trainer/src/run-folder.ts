/**
 * The trainer's part of a run folder: checkpoints and metrics, and how a run continues from them.
 *
 * Law: a step is finished when its checkpoint is in place. The metrics line follows, and is restored from the
 * checkpoint when a kill came between the two.
 */
import type { TrainablePolicy } from "@gimbal-rl/compute";
import { attributeError } from "@gimbal-rl/core";
import {
  applyRetention,
  type Checkpoint,
  findCheckpoints,
  policyVersionOf,
  type Retention,
  removeLeftovers,
  writeCheckpoint,
} from "./checkpoints.js";
import { appendMetrics, repairMetrics } from "./metrics-log.js";
import type { StepRecord } from "./step-record.js";

/** Where training stands; for progress displays. Handlers run inside the step and must not throw. */
export type TrainerEvent =
  | { readonly type: "step-start"; readonly step: number }
  | { readonly type: "checkpoint-written"; readonly step: number; readonly dir: string }
  | { readonly type: "checkpoint-end"; readonly step: number; readonly dir: string }
  | { readonly type: "step-end"; readonly step: number; readonly record: StepRecord };

/** How a run folder is opened. */
export interface RunFolderOptions {
  readonly policy: TrainablePolicy;
  readonly runDir: string;
  /** 32-bit unsigned; kept in every state.json. Resuming uses the stored one. */
  readonly seed: number;
  /** Model folder whose tokenizer files go into every checkpoint. */
  readonly modelDir?: string;
  /** Default: every checkpoint stays. */
  readonly retain?: Retention;
  readonly onEvent?: (event: TrainerEvent) => void;
}

/** An open run folder. One process at a time may have it open. */
export interface RunFolder {
  readonly seed: number;
  /** Finished steps on disk when it was opened. */
  readonly resumedStep: number;
  latest(): Checkpoint;
  /** Finishes a step: checkpoint unless told not to, then the metrics line. */
  commit(record: StepRecord, options?: { readonly checkpoint: boolean }): Promise<void>;
}

/**
 * Opens a run folder. A new one gets a checkpoint of step 0; an old one loads its latest complete checkpoint, weights
 * and optimiser, into the policy.
 * @throws {GimbalError} `store-unwritable`, `checkpoint-invalid`, `model-invalid`.
 */
export async function openRunFolder(options: RunFolderOptions): Promise<RunFolder> {
  const { modelDir, onEvent, policy, retain, runDir } = options;
  try {
    await removeLeftovers(runDir);
  } catch (error) {
    throw attributeError(
      error,
      "store-unwritable",
      "config",
      `Cannot use the run folder ${runDir}`,
    );
  }
  let checkpoints = await findCheckpoints(runDir);
  const resumed = checkpoints.at(-1);
  const seed = resumed?.state.seed ?? options.seed;

  const write = async (step: number, record: StepRecord | null): Promise<void> => {
    const checkpoint = await writeCheckpoint({
      policy,
      runDir,
      state: { step, policyVersion: policyVersionOf(step), seed, record },
      tokenizerDir: checkpoints.at(-1)?.dir ?? modelDir ?? null,
      onWritten: (dir) => onEvent?.({ type: "checkpoint-written", step, dir }),
    });
    checkpoints = [...checkpoints, checkpoint];
    onEvent?.({ type: "checkpoint-end", step, dir: checkpoint.dir });
    if (retain !== undefined) checkpoints = await applyRetention(checkpoints, retain);
  };

  if (resumed === undefined) await write(0, null);
  else await policy.load(resumed.dir, { optimizer: true });
  const records = checkpoints.flatMap(({ state }) => (state.record === null ? [] : [state.record]));
  await repairMetrics(runDir, resumed?.step ?? 0, records);

  return {
    seed,
    resumedStep: resumed?.step ?? 0,
    latest: () => checkpoints[checkpoints.length - 1],
    commit: async (record, { checkpoint } = { checkpoint: true }) => {
      if (checkpoint) await write(record.step, record);
      await appendMetrics(runDir, record);
      onEvent?.({ type: "step-end", step: record.step, record });
    },
  };
}
