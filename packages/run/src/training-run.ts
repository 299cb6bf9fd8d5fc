/**
 * The loop of a GRPO run: evaluate, then (roll out, train, swap weights) per step, then evaluate again.
 *
 * Laws: a step's attempts, once stored, are never sampled again; a step is finished when the trainer's checkpoint is
 * in place; so a run that was killed at any moment continues from its folder without losing or counting anything twice.
 */
import type { TrainablePolicy } from "@gimbal-rl/compute";
import {
  type PolicyVersion,
  type Store,
  type Task,
  type TrainableEngine,
  throwIfAborted,
} from "@gimbal-rl/core";
import { runSuite, type SuiteResult } from "@gimbal-rl/eval";
import {
  type AttemptDependencies,
  type CollectedGroup,
  type CollectOptions,
  collectGroups,
} from "@gimbal-rl/rollout";
import { readMetrics, type Trainer } from "@gimbal-rl/trainer";
import { measureReferenceKl } from "./reference-kl.js";
import type { RunConfig } from "./run-config.js";
import type { RunEvent, RunPhase } from "./run-events.js";
import { buildStepBatches } from "./step-batches.js";
import { planStep } from "./step-plan.js";
import { type StepReport, toStepReport } from "./step-report.js";

/** The part of the gateway that a run needs. */
export interface AdmissionControl {
  pause(): Promise<void>;
  resume(policyVersion?: PolicyVersion): void | Promise<void>;
}

/** Tasks of a run. */
export interface RunTasks {
  readonly train: readonly Task[];
  readonly heldout: readonly Task[];
  readonly heldoutFamily: readonly Task[];
}

/** What a run is wired from. */
export interface TrainingRunOptions {
  readonly config: RunConfig;
  /** The folder that the trainer writes to. */
  readonly runDir: string;
  readonly store: Store;
  readonly trainer: Trainer;
  readonly engine: TrainableEngine;
  readonly admission: AdmissionControl;
  readonly attempts: AttemptDependencies;
  readonly tasks: RunTasks;
  /** The weights the run started from, for the KL column; absent = the column is 0. */
  readonly reference?: TrainablePolicy;
  readonly onEvent?: (event: RunEvent) => void;
  /** Called when a step or a phase has ended: the moment to store what this process has used. */
  readonly saveUsage?: () => Promise<void>;
}

/** A finished run. */
export interface TrainingRunResult {
  /** Held-out tasks first, then those of the held-out family; null when evaluation is off. */
  readonly before: SuiteResult | null;
  readonly after: SuiteResult | null;
  /** Steps of this process and of earlier ones. */
  readonly steps: readonly StepReport[];
}

/** Stored when a step is planned, so that the run can be replayed from its folder. */
export const stepPlanKind = "step-plan";
/** The evaluation phases store their wall seconds under this kind when they are done. */
export const phaseEndKind = "phase-end";

/**
 * Runs, or continues, a training run.
 * @throws {GimbalError} what rollout and trainer throw; `aborted` through the signal. The run can then be resumed.
 */
export async function runTraining(
  options: TrainingRunOptions,
  signal: AbortSignal,
): Promise<TrainingRunResult> {
  const { config, engine, onEvent, tasks, trainer } = options;
  const finished = (await readMetrics(options.runDir)).map(toStepReport);
  const steps = finished.filter(({ step }) => step <= trainer.completedSteps());
  const evaluated = tasks.heldout.length + tasks.heldoutFamily.length;
  await useWeights(options);
  const evaluate = async (label: Exclude<RunPhase, "train">): Promise<SuiteResult | null> => {
    if (evaluated === 0) return null;
    return inPhase(options, label, evaluated, (collect) =>
      runSuite(
        {
          label,
          tasks: [...tasks.heldout, ...tasks.heldoutFamily],
          samples: 1,
          seed: config.seed,
          policyVersion: engine.policyVersion(),
          collect,
        },
        signal,
      ),
    );
  };
  const before = await evaluate("eval-before");

  const total = config.steps * config.groupsPerStep * config.groupSize;
  await inPhase(options, "train", total, async (collect) => {
    while (trainer.completedSteps() < config.steps) {
      throwIfAborted(signal);
      const report = await takeStep(options, collect, signal);
      steps.push(report);
      await options.saveUsage?.();
      onEvent?.({ type: "step-end", report });
    }
  });
  const after = await evaluate("eval-after");
  return { before, after, steps };
}

/** Loads the last checkpoint into the engine while no call is admitted, unless the engine has those weights. */
async function useWeights(options: TrainingRunOptions): Promise<void> {
  const { admission, engine, trainer } = options;
  const version = trainer.policyVersion();
  if (engine.policyVersion() === version) return;
  await admission.pause();
  await engine.loadWeights(trainer.checkpointDir(), version);
  await admission.resume(version);
}

async function inPhase<Result>(
  options: TrainingRunOptions,
  phase: RunPhase,
  total: number,
  work: (collect: CollectOptions) => Promise<Result>,
): Promise<Result> {
  const { attempts, config, onEvent, store } = options;
  const startedAtMs = attempts.clock.nowMs();
  onEvent?.({ type: "phase-start", phase, total });
  let done =
    phase === "train"
      ? options.trainer.completedSteps() * config.groupsPerStep * config.groupSize
      : 0;
  const result = await work({
    dependencies: attempts,
    store,
    concurrency: config.concurrency,
    // Evaluation samples at the training temperature too; what it samples is never trained on.
    training: true,
    quorum: config.quorum,
    ...(config.groupDeadlineMs === null ? {} : { groupDeadlineMs: config.groupDeadlineMs }),
    onAttempt: (record) => {
      done += 1;
      onEvent?.({ type: "attempt-end", phase, record, done, total });
    },
    onDiscard: ({ reason }) => onEvent?.({ type: "attempt-discarded", phase, reason }),
  });
  const seconds = (attempts.clock.nowMs() - startedAtMs) / 1000;
  await store.append(phaseEndKind, phase, { phase, seconds });
  await options.saveUsage?.();
  onEvent?.({ type: "phase-end", phase, seconds });
  return result;
}

async function takeStep(
  options: TrainingRunOptions,
  collect: CollectOptions,
  signal: AbortSignal,
): Promise<StepReport> {
  const { attempts, config, reference, store, tasks, trainer } = options;
  const step = trainer.completedSteps() + 1;
  const startedAtMs = attempts.clock.nowMs();
  const plans = planStep(tasks.train, config, step, trainer.policyVersion());
  await store.append(stepPlanKind, String(step), plans);
  const collected = await collectGroups(plans, collect, signal);
  const planned = await store.get(stepPlanKind, String(step));
  const built = await buildStepBatches(collected, store, config, planned?.sequence);
  const kl = reference === undefined ? 0 : await measureReferenceKl(reference, built.batches);
  const rolledOutAtMs = attempts.clock.nowMs();
  const { batches, fidelity, ...numbers } = built;
  const { record } = await trainer.step(batches, {
    ...numbers,
    coverage: fidelity.coverage,
    leftOut: fidelity.leftOut,
    kl,
    seconds: { wall: (rolledOutAtMs - startedAtMs) / 1000, ...sumSeconds(collected) },
  });
  await useWeights(options);
  return toStepReport(record);
}

function sumSeconds(collected: readonly CollectedGroup[]): {
  harness: number;
  tools: number;
  grading: number;
} {
  const sum = { harness: 0, tools: 0, grading: 0 };
  for (const { seconds } of collected.flatMap((group) => group.records)) {
    sum.harness += seconds.harness;
    sum.tools += seconds.tools;
    sum.grading += seconds.grading;
  }
  return sum;
}
