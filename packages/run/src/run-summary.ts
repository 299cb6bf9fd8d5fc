/**
 * What a finished run showed: one plain object, computed from stored data.
 */
import type { CapturedCall, FailureClass, LeftOut, Store } from "@gimbal-rl/core";
import { type Interval, pairedBootstrap, type SuiteResult } from "@gimbal-rl/eval";
import {
  type AttemptRecord,
  attemptDiscardedKind,
  attemptEndKind,
  type DiscardedTry,
  loadCalls,
} from "@gimbal-rl/rollout";
import type { RunConfig } from "./run-config.js";
import type { StepReport } from "./step-report.js";
import { phaseEndKind, type RunTasks, type TrainingRunResult } from "./training-run.js";

/** pass@1 before and after on one set of tasks. */
export interface BeforeAfter {
  readonly tasks: number;
  readonly before: number;
  readonly after: number;
  /** 95 % paired bootstrap interval over tasks, of the gain. */
  readonly gainCi95: readonly [low: number, high: number];
}

/** The result of a run. */
export interface RunSummary {
  readonly harness: string;
  readonly harnessVersion: string;
  readonly seed: number;
  readonly steps: number;
  /** Steps with a group whose attempts did not all score the same; the others have nothing to learn from. */
  readonly stepsWithSignal: number;
  /** Held-out members of the trained families; null when evaluation is off. */
  readonly passAt1: BeforeAfter | null;
  readonly heldOutFamily: BeforeAfter | null;
  readonly families: Readonly<Record<string, BeforeAfter>>;
  /** Share of the evaluation's calls whose tool calls parsed; null where it made no call, or is off. */
  readonly parsedCalls: { readonly before: number | null; readonly after: number | null } | null;
  /** Trained / sampled tokens of all steps; 1 when nothing was sampled. */
  readonly coverage: number;
  /** Why the other sampled tokens are not trained. */
  readonly leftOut: readonly LeftOut[];
  readonly sampledTokens: number;
  readonly trainedTokens: number;
  readonly discarded: {
    readonly tokens: number;
    readonly reasons: Readonly<Record<string, number>>;
  };
  readonly logprobMismatchMax: number;
  readonly seconds: {
    readonly harness: number;
    readonly tools: number;
    readonly grading: number;
    readonly sampling: number;
    readonly training: number;
    readonly evaluation: number;
  };
  readonly wallSeconds: number;
  /** Attempts of the evaluations by failure class. */
  readonly failures: readonly {
    readonly cause: FailureClass;
    readonly before: number;
    readonly after: number;
  }[];
  readonly runDir: string;
}

/** What the summary is computed from. */
export interface SummaryInput {
  readonly config: RunConfig;
  readonly store: Store;
  readonly tasks: RunTasks;
  readonly result: TrainingRunResult;
  readonly harness: { readonly id: string; readonly version: string };
  /** CPU or busy seconds of the sampler, from the engine. */
  readonly samplingSeconds: number;
  readonly wallSeconds: number;
  readonly runDir: string;
}

/** Resamples of the bootstrap; enough for two stable digits. */
const resamples = 10_000;

function compare(
  before: SuiteResult,
  after: SuiteResult,
  keep: (family: string) => boolean,
  seed: number,
): BeforeAfter | null {
  const pairs = before.tasks.flatMap((task, i) => {
    const other = after.tasks[i];
    return other !== undefined && keep(task.family) ? [[task, other] as const] : [];
  });
  if (pairs.length === 0) return null;
  const passed = pairs.map(([one, two]) => [
    // A suite has no task without an attempt.
    one.successes / one.samples,
    two.successes / two.samples,
  ]);
  const first = passed.map(([value = 0]) => value);
  const second = passed.map(([, value = 0]) => value);
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  const gain: Interval = pairedBootstrap(first, second, { seed, resamples });
  return {
    tasks: pairs.length,
    before: mean(first),
    after: mean(second),
    gainCi95: [gain.low, gain.high],
  };
}

async function parsedShare(store: Store, suite: SuiteResult): Promise<number | null> {
  const calls = await loadCalls(store, new Set(suite.records.map((record) => record.sessionId)));
  const all: CapturedCall[] = [...calls.values()].flat();
  if (all.length === 0) return null;
  return all.filter((call) => !call.issues.includes("malformed-tool-call")).length / all.length;
}

/** Tokens sampled for training that no loss term covers: spoiled tries, and sessions that a kill cut short. */
async function countDiscarded(store: Store): Promise<RunSummary["discarded"]> {
  const reasons: Record<string, number> = {};
  const known = new Set<string>();
  const isTraining = (attemptId: string): boolean => attemptId.startsWith("step-");
  const add = (reason: string, tokens: number): void => {
    reasons[reason] = (reasons[reason] ?? 0) + tokens;
  };
  for await (const event of store.read({ kind: attemptEndKind })) {
    known.add((event.data as AttemptRecord).sessionId);
  }
  for await (const event of store.read({ kind: attemptDiscardedKind })) {
    const { attempt, reason, sampledTokens, sessionId } = event.data as DiscardedTry;
    if (sessionId !== null) known.add(sessionId);
    if (isTraining(attempt.attemptId)) add(reason, sampledTokens);
  }
  for await (const event of store.read({ kind: "call-end" })) {
    const call = event.data as CapturedCall;
    if (known.has(call.sessionId) || call.attemptId === null) continue;
    if (isTraining(call.attemptId)) add("interrupted", call.sampledIds.length);
  }
  const tokens = Object.values(reasons).reduce((sum, value) => sum + value, 0);
  return { tokens, reasons };
}

function countFailures(result: TrainingRunResult): RunSummary["failures"] {
  const counts = new Map<FailureClass, { before: number; after: number }>();
  for (const when of ["before", "after"] as const) {
    for (const record of result[when]?.records ?? []) {
      const count = counts.get(record.failureClass) ?? { before: 0, after: 0 };
      count[when] += 1;
      counts.set(record.failureClass, count);
    }
  }
  return [...counts].map(([cause, count]) => ({ cause, ...count }));
}

/** Tokens left out by reason, over the steps. */
function sumLeftOut(steps: readonly StepReport[]): LeftOut[] {
  const byReason = new Map<string, number>();
  for (const { reason, tokens } of steps.flatMap((step) => step.leftOut ?? [])) {
    byReason.set(reason, (byReason.get(reason) ?? 0) + tokens);
  }
  return [...byReason].map(([reason, tokens]) => ({ reason, tokens }));
}

/** Sums a number over the steps. */
function sumOf(steps: readonly StepReport[], pick: (step: StepReport) => number): number {
  return steps.reduce((total, step) => total + pick(step), 0);
}

/** Computes the summary. */
export async function summariseRun(input: SummaryInput): Promise<RunSummary> {
  const { config, result, store, tasks } = input;
  const { after, before, steps } = result;
  const trained = new Set(tasks.heldout.map((task) => task.family));
  const both = before !== null && after !== null ? { before, after } : null;
  const compared = (keep: (family: string) => boolean): BeforeAfter | null =>
    both === null ? null : compare(both.before, both.after, keep, config.seed);
  const families: Record<string, BeforeAfter> = {};
  for (const family of new Set(both?.before.tasks.map((task) => task.family) ?? [])) {
    const one = compared((name) => name === family);
    if (one !== null) families[family] = one;
  }
  let evaluation = 0;
  for await (const event of store.read({ kind: phaseEndKind })) {
    const { phase, seconds } = event.data as { phase: string; seconds: number };
    if (phase !== "train") evaluation += seconds;
  }
  const sampledTokens = sumOf(steps, (step) => step.sampledTokens);
  const trainedTokens = sumOf(steps, (step) => step.trainedTokens);
  return {
    harness: input.harness.id,
    harnessVersion: input.harness.version,
    seed: config.seed,
    steps: steps.length,
    stepsWithSignal: steps.filter((step) => step.groupsWithSignal > 0).length,
    passAt1: compared((family) => trained.has(family)),
    heldOutFamily: compared((family) => !trained.has(family)),
    families,
    parsedCalls:
      both === null
        ? null
        : {
            before: await parsedShare(store, both.before),
            after: await parsedShare(store, both.after),
          },
    coverage: sampledTokens === 0 ? 1 : trainedTokens / sampledTokens,
    leftOut: sumLeftOut(steps),
    sampledTokens,
    trainedTokens,
    discarded: await countDiscarded(store),
    logprobMismatchMax: steps.reduce((most, step) => Math.max(most, step.logprobMismatchMax), 0),
    seconds: {
      harness: sumOf(steps, (step) => step.seconds.harness),
      tools: sumOf(steps, (step) => step.seconds.tools),
      grading: sumOf(steps, (step) => step.seconds.grading),
      sampling: input.samplingSeconds,
      training: sumOf(steps, (step) => step.seconds.training),
      evaluation,
    },
    wallSeconds: input.wallSeconds,
    failures: countFailures(result),
    runDir: input.runDir,
  };
}
