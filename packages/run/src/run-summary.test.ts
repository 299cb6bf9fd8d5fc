import {
  type AttemptId,
  asId,
  type FailureClass,
  type GroupId,
  type PolicyVersion,
  type SessionId,
  type Store,
  type Task,
  type TaskId,
} from "@gimbal-rl/core";
import type { SuiteResult } from "@gimbal-rl/eval";
import { type AttemptRecord, attemptDiscardedKind, attemptEndKind } from "@gimbal-rl/rollout";
import { createMemoryStore } from "@gimbal-rl/store";
import { beforeEach, describe, expect, it } from "vitest";
import { defaultRunConfig } from "./run-config.js";
import { type RunSummary, summariseRun } from "./run-summary.js";
import type { StepReport } from "./step-report.js";
import { phaseEndKind } from "./training-run.js";

const config = { ...defaultRunConfig, seed: 1, facts: {} };

function taskOf(name: string, family: string): Task {
  return {
    taskId: asId<TaskId>(name),
    suite: "fake",
    family,
    split: "heldout",
    instruction: "",
    files: {},
    protectedPaths: [],
    gradingFiles: {},
    verifier: { kind: "fake", options: {} },
    budgets: {},
  };
}

function recordOf(attemptId: string, score: number, failureClass: FailureClass): AttemptRecord {
  return {
    attempt: {
      attemptId: asId<AttemptId>(attemptId),
      taskId: asId<TaskId>("t"),
      groupId: asId<GroupId>("g"),
      index: 0,
      seed: 1,
      policyVersion: asId<PolicyVersion>("step-0"),
    },
    sessionId: asId<SessionId>(`ses ${attemptId}`),
    verdict: { verifier: "fake", score, failureClass, evidence: [] },
    failureClass,
    outcome: {
      status: "completed",
      ...{ finalText: null, errorText: null, nativeSessionId: null },
      ...{ toolCalls: 0, toolErrors: 0 },
    },
    sandboxLevel: "namespace",
    calls: 1,
    sampledTokens: 10,
    seconds: { harness: 1, tools: 0, grading: 0, wall: 1 },
  };
}

/** One attempt per task; `passed` says which. */
function suiteOf(label: string, tasks: readonly Task[], passed: readonly boolean[]): SuiteResult {
  const records = tasks.map(({ taskId }, i) =>
    recordOf(`${label}/${taskId}/0`, passed[i] ? 1 : 0, passed[i] ? "none" : "wrong-result"),
  );
  const results = tasks.map(({ family, taskId }, i) => {
    const successes = passed[i] ? 1 : 0;
    return { taskId, family, samples: 1, successes, score: successes };
  });
  return { label, tasks: results, records };
}

function stepOf(step: number): StepReport {
  return {
    step,
    ...{ reward: 0.5, passRate: 0.5, attempts: 4, groupsWithSignal: 1, coverage: 0.9, kl: 0 },
    ...{ sampledTokens: 100, trainedTokens: 90, rows: 50, loss: 0, gradientNorm: 0, entropy: 0 },
    leftOut: [
      { reason: "undelivered", tokens: 6 + step },
      ...(step === 1 ? [] : [{ reason: "forked", tokens: 1 }]),
    ],
    logprobMismatchMax: step === 1 ? 0.25 : 0,
    seconds: { wall: 5, harness: 1, tools: 0.5, grading: 0.25, training: 2 },
  };
}

const heldout = [taskOf("a", "edit"), taskOf("b", "edit"), taskOf("c", "move")];
const family = [taskOf("d", "copy"), taskOf("e", "copy")];
const tasks = { train: [], heldout, heldoutFamily: family };
let store: Store;

beforeEach(() => {
  store = createMemoryStore();
});

async function addCall(record: AttemptRecord, sampled: number, issues: string[]): Promise<void> {
  const { attempt, sessionId } = record;
  const key = `${sessionId}.0`;
  const sampledIds = Array.from({ length: sampled }, () => 1);
  await store.append("call-end", key, {
    ...{ callId: key, sessionId, index: 0, attemptId: attempt.attemptId, sampledIds, issues },
  });
}

function summarise(
  before: SuiteResult | null,
  after: SuiteResult | null,
  steps: readonly StepReport[] = [],
): Promise<RunSummary> {
  return summariseRun({
    ...{ config, store, tasks },
    result: { before, after, steps },
    harness: { id: "pi", version: "1.6.0" },
    ...{ samplingSeconds: 3, wallSeconds: 60, runDir: "/runs/x" },
  });
}

describe("summariseRun", () => {
  it("keeps the family held out whole apart from the held-out tasks of the trained ones", async () => {
    const all = [...heldout, ...family];
    const before = suiteOf("eval-before", all, [true, false, false, false, false]);
    const after = suiteOf("eval-after", all, [true, true, true, true, false]);
    const summary = await summarise(before, after);
    expect(summary.passAt1).toMatchObject({ tasks: 3, before: 1 / 3, after: 1 });
    expect(summary.heldOutFamily).toMatchObject({ tasks: 2, before: 0, after: 0.5 });
    expect(Object.keys(summary.families)).toEqual(["edit", "move", "copy"]);
    const [low = 0, high = 0] = summary.passAt1?.gainCi95 ?? [];
    expect(low).toBeGreaterThanOrEqual(0);
    expect(high).toBe(1);
    expect(low).toBeLessThan(2 / 3);
    expect(summary.failures).toEqual([
      { cause: "none", before: 1, after: 4 },
      { cause: "wrong-result", before: 4, after: 1 },
    ]);
  });

  it("has no pass@1 without an evaluation", async () => {
    const { heldOutFamily, parsedCalls, passAt1 } = await summarise(null, null);
    expect([passAt1, heldOutFamily, parsedCalls]).toEqual([null, null, null]);
  });

  it("counts the calls that parsed, by evaluation", async () => {
    const before = suiteOf("eval-before", heldout, [false, false, false]);
    const after = suiteOf("eval-after", heldout, [false, false, false]);
    for (const [i, record] of before.records.entries()) {
      await addCall(record, 5, i === 0 ? ["malformed-tool-call"] : ["truncated"]);
    }
    for (const record of after.records) await addCall(record, 5, []);
    const { parsedCalls } = await summarise(before, after);
    expect(parsedCalls).toEqual({ before: 2 / 3, after: 1 });
  });

  it("has no share of parsed calls where no call was made", async () => {
    const before = suiteOf("eval-before", heldout, [false, false, false]);
    const after = suiteOf("eval-after", heldout, [false, false, false]);
    for (const record of after.records) await addCall(record, 5, []);
    expect((await summarise(before, after)).parsedCalls).toEqual({ before: null, after: 1 });
  });

  it("sums steps, and takes the largest mismatch", async () => {
    const summary = await summarise(null, null, [stepOf(1), stepOf(2)]);
    expect(summary).toMatchObject({
      ...{ steps: 2, sampledTokens: 200, trainedTokens: 180, coverage: 0.9 },
      leftOut: [
        { reason: "undelivered", tokens: 15 },
        { reason: "forked", tokens: 1 },
      ],
      logprobMismatchMax: 0.25,
      seconds: { harness: 2, tools: 1, grading: 0.5, sampling: 3, training: 4, evaluation: 0 },
      ...{ wallSeconds: 60, runDir: "/runs/x", harness: "pi", harnessVersion: "1.6.0", seed: 1 },
    });
  });

  it("takes the seconds of an evaluation from its first end, whoever resumed the run", async () => {
    await store.append(phaseEndKind, "eval-before", { phase: "eval-before", seconds: 40 });
    await store.append(phaseEndKind, "eval-before", { phase: "eval-before", seconds: 0.1 });
    await store.append(phaseEndKind, "train", { phase: "train", seconds: 100 });
    await store.append(phaseEndKind, "eval-after", { phase: "eval-after", seconds: 30 });
    expect((await summarise(null, null)).seconds.evaluation).toBe(70);
  });

  it("counts as discarded what training sampled and nothing trains: spoiled tries and killed sessions", async () => {
    const finished = recordOf("step-0001-0/t/0", 1, "none");
    await store.append(attemptEndKind, finished.attempt.attemptId, finished);
    await addCall(finished, 11, []);
    const spoiled = recordOf("step-0001-0/t/1", 0, "infrastructure");
    const { attempt, sessionId } = spoiled;
    const discarded = { attempt, sessionId, reason: "infrastructure", sampledTokens: 7 };
    await store.append(attemptDiscardedKind, "1", discarded);
    await addCall(spoiled, 7, []);
    await addCall(recordOf("step-0002-0/t/0", 0, "none"), 5, ["aborted"]);
    // Evaluation trains nothing, so nothing of it is discarded.
    const evaluated = recordOf("eval-before/t/0", 0, "none");
    await addCall(evaluated, 100, []);
    await store.append(attemptDiscardedKind, "2", {
      ...discarded,
      ...evaluated,
      sampledTokens: 100,
    });
    expect((await summarise(null, null)).discarded).toEqual({
      tokens: 12,
      reasons: { infrastructure: 7, interrupted: 5 },
    });
  });
});
