/**
 * Suite runner: the tasks of a suite through the real harness, k samples each, stored and resumable like any attempt.
 */
import type { PolicyVersion, Task } from "@gimbal-rl/core";
import {
  type AttemptRecord,
  type CollectedGroup,
  type CollectOptions,
  collectGroups,
  planGroup,
} from "@gimbal-rl/rollout";
import { type BootstrapOptions, bootstrapMean, type Interval } from "./bootstrap.js";
import { passAtK } from "./pass-at-k.js";

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
  /** Mean verdict score. */
  readonly score: number;
}

/** A finished evaluation. */
export interface SuiteResult {
  readonly label: string;
  readonly tasks: readonly TaskResult[];
  readonly records: readonly AttemptRecord[];
}

/** Runs a suite. Throws what `collectGroups` throws. */
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
  const scores = records.map((record) => record.verdict.score ?? 0);
  const sum = scores.reduce((total, score) => total + score, 0);
  return {
    taskId: plan.task.taskId,
    family: plan.task.family,
    samples: records.length,
    successes: scores.filter((score) => score >= 1).length,
    score: records.length === 0 ? 0 : sum / records.length,
  };
}

/** pass@k over the tasks of a suite, each task counting once, with a bootstrap interval over tasks. */
export function suitePassAtK(result: SuiteResult, k: number, options: BootstrapOptions): Interval {
  return bootstrapMean(
    result.tasks.map((task) => passAtK(task.samples, task.successes, k)),
    options,
  );
}
