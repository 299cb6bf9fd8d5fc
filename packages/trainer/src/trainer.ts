/**
 * The trainer: steps over batches with a checkpoint after each, resumable from its folder alone.
 *
 * It never learns where a batch came from. Law: a run that was killed at any moment and opened again, given the same
 * batches for the steps that were not finished, ends in the same weights bit for bit.
 */
import type { TrainablePolicy, UpdateOptions } from "@gimbal-rl/compute";
import { type Clock, type PolicyVersion, systemClock, type TrainingBatch } from "@gimbal-rl/core";
import type { PolicyLossOptions } from "@gimbal-rl/objective";
import { policyVersionOf } from "./checkpoints.js";
import { openRunFolder, type RunFolderOptions } from "./run-folder.js";
import { type LearningRateSchedule, learningRateAt } from "./schedule.js";
import type { StepRecord } from "./step-record.js";
import { type TrainStepMetrics, trainStep } from "./train-step.js";

/** AdamW settings apart from the learning rate. */
export type OptimizerOptions = Omit<UpdateOptions, "learningRate">;

/** How a trainer is made. */
export interface CreateTrainerOptions extends RunFolderOptions {
  readonly schedule: LearningRateSchedule;
  readonly optimizer?: OptimizerOptions;
  /** Default: the `grpo` preset's. */
  readonly objective?: PolicyLossOptions;
  /** Passes over each step's batches. Default 1. */
  readonly epochs?: number;
  /** Updates per pass. Default 1. */
  readonly minibatches?: number;
  /** Needed when the objective has a KL. */
  readonly reference?: TrainablePolicy;
  readonly clock?: Clock;
}

/** A training run. Steps are taken one after the other, never at the same time. */
export interface Trainer {
  readonly policy: TrainablePolicy;
  /** The run's seed: the stored one when the run was resumed. */
  readonly seed: number;
  /** Finished steps; the next one is this plus 1. */
  completedSteps(): number;
  /** Version of the current weights. */
  policyVersion(): PolicyVersion;
  /** The latest checkpoint: a model folder. */
  checkpointDir(): string;
  /**
   * Trains one step and makes it durable.
   * @param extra - Plain JSON kept on the step's record: cursor, rewards.
   * @throws {GimbalError} `non-finite`, `store-unwritable`, `config-invalid`. After an error make a new trainer on the
   * same folder; it continues from the last finished step.
   */
  step(
    batches: readonly TrainingBatch[],
    extra?: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly record: StepRecord; readonly metrics: TrainStepMetrics }>;
}

/**
 * Starts a run in `runDir`, or continues the one that is there.
 *
 * @throws {GimbalError} `store-unwritable`, `checkpoint-invalid`, `model-invalid`.
 * @example
 * const trainer = await createTrainer({ policy, runDir, seed: 1, schedule: { kind: "constant", peak: 1e-4 } });
 * while (trainer.completedSteps() < 10) await trainer.step(await nextBatches());
 */
export async function createTrainer(options: CreateTrainerOptions): Promise<Trainer> {
  const { clock = systemClock, onEvent, optimizer, policy, schedule } = options;
  const { epochs = 1, minibatches = 1, objective, reference } = options;
  const folder = await openRunFolder(options);
  let completed = folder.resumedStep;
  return {
    policy,
    seed: folder.seed,
    completedSteps: () => completed,
    policyVersion: () => policyVersionOf(completed),
    checkpointDir: () => folder.latest().dir,
    step: async (batches, extra = {}) => {
      const step = completed + 1;
      onEvent?.({ type: "step-start", step });
      const startedAtMs = clock.nowMs();
      const metrics = await trainStep(policy, batches, {
        ...optimizer,
        learningRate: learningRateAt(schedule, step),
        epochs,
        minibatches,
        ...(objective && { objective }),
        ...(reference && { reference }),
      });
      const atMs = clock.nowMs();
      const record: StepRecord = {
        step,
        policyVersion: policyVersionOf(step),
        atMs,
        seconds: (atMs - startedAtMs) / 1000,
        metrics: { ...metrics },
        extra,
      };
      await folder.commit(record);
      completed = step;
      return { record, metrics };
    },
  };
}
