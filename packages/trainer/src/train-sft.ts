/**
 * Supervised training: demonstrations in, weights out, with the same checkpoints and resume as the trainer.
 *
 * Law: which examples a step sees is a function of (seed, step) alone, so a resumed run sees what the uninterrupted one
 * would have.
 */
import type { TrainablePolicy } from "@gimbal-rl/compute";
import {
  type Clock,
  createRandom,
  GimbalError,
  hashToSeed,
  shuffled,
  systemClock,
  type TrainingBatch,
  type Trajectory,
} from "@gimbal-rl/core";
import { buildSftBatches } from "@gimbal-rl/graph";
import { sftLoss, sumOfWeights } from "@gimbal-rl/objective";
import { policyVersionOf, type Retention } from "./checkpoints.js";
import { openRunFolder, type RunFolder, type TrainerEvent } from "./run-folder.js";
import { type LearningRateSchedule, learningRateAt } from "./schedule.js";
import type { StepRecord } from "./step-record.js";
import { assertFinite } from "./train-step.js";
import type { OptimizerOptions } from "./trainer.js";

/** What one supervised update did. */
export interface SftStepMetrics {
  /** Mean negative log-probability per token, nats, before the update. */
  readonly loss: number;
  /** Global gradient norm before clipping, frozen parameters left out. */
  readonly gradientNorm: number;
  readonly learningRate: number;
  readonly terms: number;
  /** Rows computed: the unique tokens. */
  readonly rows: number;
  readonly batches: number;
}

/**
 * One supervised update over micro-batches with a common denominator.
 * @throws {GimbalError} `non-finite`, `shape-mismatch` when there are no terms.
 */
async function sftStep(
  policy: TrainablePolicy,
  batches: readonly TrainingBatch[],
  options: OptimizerOptions & { readonly learningRate: number },
): Promise<SftStepMetrics> {
  const denominator = sumOfWeights(batches.map(({ terms }) => terms.weights));
  let loss = 0;
  let rows = 0;
  let terms = 0;
  for (const batch of batches) {
    const { temperature } = batch;
    const pass = await policy.forward(batch.trie, batch.terms, {
      temperature,
      keepForBackward: true,
    });
    const part = sftLoss({ logprobs: pass.logprobs, weights: batch.terms.weights, denominator });
    assertFinite("loss", part.loss);
    loss += part.loss;
    rows += pass.rows;
    terms += pass.logprobs.length;
    await pass.backward(part.gradLogprobs);
  }
  const { gradientNorm } = await policy.update(options);
  assertFinite("gradient norm", gradientNorm);
  const { learningRate } = options;
  return { loss, gradientNorm, learningRate, terms, rows, batches: batches.length };
}

/** Mean negative log-probability per token of held-out batches, nats; nothing is updated. */
export async function sftEvaluate(
  policy: TrainablePolicy,
  batches: readonly TrainingBatch[],
): Promise<number> {
  const denominator = sumOfWeights(batches.map(({ terms }) => terms.weights));
  let loss = 0;
  for (const { temperature, terms, trie } of batches) {
    const pass = await policy.forward(trie, terms, { temperature, keepForBackward: false });
    loss += sftLoss({ logprobs: pass.logprobs, weights: terms.weights, denominator }).loss;
    pass.free();
  }
  return loss;
}

/** How supervised training runs. */
export interface TrainSftOptions {
  readonly schedule: LearningRateSchedule;
  readonly optimizer?: OptimizerOptions;
  /** 32-bit unsigned; decides the order of the examples. */
  readonly seed: number;
  /** Passes over the examples; give this or `steps`. */
  readonly epochs?: number;
  /** Updates in total; wins over `epochs`. */
  readonly steps?: number;
  /** Trajectories (or given batches) per update. Default 8. */
  readonly examplesPerStep?: number;
  /** Unique tokens in one forward pass, for trajectories. Default: no limit. */
  readonly maxRows?: number;
  /** Folder for checkpoints and metrics; absent keeps nothing. When it holds a run, that run is continued. */
  readonly runDir?: string;
  /** Model folder whose tokenizer files go into the checkpoints. */
  readonly modelDir?: string;
  /** A checkpoint after every this many updates, and after the last. Default: only the last. */
  readonly checkpointEvery?: number;
  readonly retain?: Retention;
  /** Runs after every `evaluateEvery` updates and after the last; its numbers go on the record. */
  readonly evaluate?: (step: number) => Promise<Readonly<Record<string, unknown>>>;
  readonly evaluateEvery?: number;
  /** Called after each update. */
  readonly onStep?: (record: StepRecord) => void;
  readonly onEvent?: (event: TrainerEvent) => void;
  readonly clock?: Clock;
  /** Stops after the update in progress, with a checkpoint when there is a run folder. */
  readonly signal?: AbortSignal;
}

/** The examples of a step: epochs are seeded permutations, cut into consecutive pieces; the last piece may be short. */
export function examplesOfStep(
  count: number,
  perStep: number,
  seed: number,
  step: number,
): readonly number[] {
  const stepsPerEpoch = Math.ceil(count / perStep);
  const epoch = Math.floor((step - 1) / stepsPerEpoch);
  const indices = Array.from({ length: count }, (_, index) => index);
  const order = shuffled(indices, createRandom(hashToSeed("sft-order", seed, epoch)));
  const start = ((step - 1) % stepsPerEpoch) * perStep;
  return order.slice(start, start + perStep);
}

const isBatch = (example: Trajectory | TrainingBatch): example is TrainingBatch =>
  "trie" in example;

function toBatches(
  examples: readonly (Trajectory | TrainingBatch)[],
  maxRows: number | undefined,
): TrainingBatch[] {
  const trajectories = examples.filter((example): example is Trajectory => !isBatch(example));
  return [
    ...examples.filter(isBatch),
    ...buildSftBatches(trajectories, maxRows === undefined ? {} : { maxRows }),
  ].filter(({ terms }) => terms.rows.length > 0);
}

function plannedSteps(count: number, perStep: number, options: TrainSftOptions): number {
  if (count === 0) {
    throw new GimbalError(
      "config-invalid",
      "No examples to train on. Pass at least one trajectory.",
    );
  }
  const steps = options.steps ?? Math.ceil(count / perStep) * (options.epochs ?? Number.NaN);
  if (Number.isInteger(steps) && steps >= 0) return steps;
  throw new GimbalError(
    "config-invalid",
    "Found neither steps nor a whole number of epochs. Set one.",
  );
}

/**
 * Trains on demonstrations. Examples without trained tokens are passed over.
 *
 * @param examples - Trajectories, or batches already built.
 * @returns The number of finished updates and the last record (null when nothing was left to do).
 * @throws {GimbalError} `config-invalid`, `non-finite`, `store-unwritable`, `aborted` (after a checkpoint).
 * @example
 * await trainSft(policy, demonstrations, { seed: 1, epochs: 2, schedule: { kind: "constant", peak: 1e-3 } });
 */
export async function trainSft(
  policy: TrainablePolicy,
  examples: readonly (Trajectory | TrainingBatch)[],
  options: TrainSftOptions,
): Promise<{ readonly steps: number; readonly last: StepRecord | null }> {
  const { clock = systemClock, examplesPerStep = 8, runDir, signal } = options;
  const total = plannedSteps(examples.length, examplesPerStep, options);
  const folder: RunFolder | null =
    runDir === undefined ? null : await openRunFolder({ ...options, policy, runDir });
  const seed = folder?.seed ?? options.seed;
  let last: StepRecord | null = null;
  let step = folder?.resumedStep ?? 0;
  while (step < total) {
    step += 1;
    options.onEvent?.({ type: "step-start", step });
    const startedAtMs = clock.nowMs();
    const chosen = examplesOfStep(examples.length, examplesPerStep, seed, step);
    const batches = toBatches(
      chosen.map((index) => examples[index]),
      options.maxRows,
    );
    const learningRate = learningRateAt(options.schedule, step);
    const metrics =
      batches.length === 0
        ? { loss: 0, gradientNorm: 0, learningRate, terms: 0, rows: 0, batches: 0 }
        : await sftStep(policy, batches, { ...options.optimizer, learningRate });
    const atMs = clock.nowMs();
    const isLast = step === total;
    const due = (every: number | undefined): boolean =>
      isLast || (every !== undefined && step % every === 0);
    last = {
      step,
      policyVersion: policyVersionOf(step),
      atMs,
      seconds: (atMs - startedAtMs) / 1000,
      metrics: { ...metrics },
      extra: due(options.evaluateEvery) ? ((await options.evaluate?.(step)) ?? {}) : {},
    };
    const stopping = signal?.aborted === true;
    await folder?.commit(last, { checkpoint: due(options.checkpointEvery) || stopping });
    options.onStep?.(last);
    if (stopping && !isLast) {
      throw new GimbalError(
        "aborted",
        `Stopped after update ${step} of ${total}. Run again with the same folder to continue.`,
      );
    }
  }
  return { steps: step, last };
}
