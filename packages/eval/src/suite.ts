/**
 * Suite runner: the tasks of a suite through the real harness, k samples each, stored and resumable like any attempt.
 */
import { GimbalError, type PolicyVersion, type Task } from "@gimbal-rl/core";
import {
  type AttemptRecord,
  type CollectedGroup,
  type CollectOptions,
  collectGroups,
  planGroup,
} from "@gimbal-rl/rollout";
import { type BootstrapOptions, bootstrapMean, type Interval } from "./bootstrap.js";
import { passAtK } from "./pass-at-k.js";
import { wilsonInterval } from "./wilson.js";

/** What is evaluated. */
export interface SuiteOptions {
  /** Names the evaluation; attempts of the same label and seed are the same attempts. */
  readonly label: string;
  readonly tasks: readonly Task[];
  /** Attempts per task. */
  readonly samples: number;
  /** The same seed before and after training gives the same sampling seeds where prompts are the same. */
  readonly seed: number;
  readonly policyVersion: PolicyVersion;
  readonly collect: CollectOptions;
}

/** One task of a suite. */
export interface TaskResult {
  readonly taskId: string;
  readonly family: string;
  readonly samples: number;
  readonly successes: number;
  /** Mean verdict score; attempts of a suite are always scored. */
  readonly score: number;
}

/** A finished evaluation. */
export interface SuiteResult {
  readonly label: string;
  readonly tasks: readonly TaskResult[];
  readonly records: readonly AttemptRecord[];
}

/**
 * Runs a suite. Attempts that are stored already are read back, not run again.
 *
 * @throws {GimbalError} `aborted` through the signal; an infrastructure failure (`harness-failed`, `sandbox-failed`,
 * `unavailable` and their like) that outlasted the tries; `store-unwritable`; `store-corrupt` when a stored attempt has no
 * score, or a task has no attempt.
 */
export async function runSuite(options: SuiteOptions, signal: AbortSignal): Promise<SuiteResult> {
  const { collect, label, policyVersion, samples, seed, tasks } = options;
  const plans = tasks.map((task) =>
    // The label stays out of the seeds: before and after training draw from the same ones.
    planGroup({ label, seedLabel: "suite", task, size: samples, runSeed: seed, policyVersion }),
  );
  const collected = await collectGroups(plans, collect, signal);
  return {
    label,
    tasks: collected.map(toTaskResult),
    records: collected.flatMap((group) => group.records),
  };
}

function toTaskResult({ plan, records }: CollectedGroup): TaskResult {
  const scores = records.map(({ attempt, verdict }) => {
    // Collected attempts are scored: one that is not is run again, and stored only when it was judged.
    if (verdict.score !== null) return verdict.score;
    throw new GimbalError(
      "store-corrupt",
      `Attempt ${attempt.attemptId} is stored without a score; only scored attempts are. Name another folder.`,
    );
  });
  if (scores.length === 0) {
    throw new GimbalError(
      "store-corrupt",
      `Task ${plan.task.taskId} has no finished attempt; at least one was to be waited for.`,
    );
  }
  const sum = scores.reduce((total, score) => total + score, 0);
  return {
    taskId: plan.task.taskId,
    family: plan.task.family,
    samples: records.length,
    successes: scores.filter((score) => score >= 1).length,
    score: sum / scores.length,
  };
}

/** pass@k of a suite with its interval, and how that was made. */
export interface PassAtKInterval extends Interval {
  readonly method: "bootstrap" | "wilson";
}

/**
 * pass@k over the tasks of a suite, each task counting once. With one sample a task and the usual confidence of 0.95
 * the interval is Wilson's, which keeps a width when all or none passed; else it is a bootstrap over tasks.
 */
export function suitePassAtK(
  result: SuiteResult,
  k: number,
  options: BootstrapOptions,
): PassAtKInterval {
  const shares = result.tasks.map((task) => passAtK(task.samples, task.successes, k));
  const bootstrap = bootstrapMean(shares, options);
  const { confidence = 0.95 } = options;
  if (confidence !== 0.95 || result.tasks.some(({ samples }) => samples !== 1)) {
    return { ...bootstrap, method: "bootstrap" };
  }
  const successes = result.tasks.reduce((sum, task) => sum + task.successes, 0);
  const { high, low } = wilsonInterval(successes, shares.length);
  return { mean: bootstrap.mean, low, high, method: "wilson" };
}
