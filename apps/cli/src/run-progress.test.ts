import type { RunEvent, RunSummary, StepReport } from "@gimbal-rl/run";
import { describe, expect, it } from "vitest";
import type { Output } from "./output.js";
import { createRunProgress, summaryText } from "./run-progress.js";

const report: StepReport = {
  step: 3,
  ...{ reward: 0.5, passRate: 0.25, attempts: 8, groupsWithSignal: 1, coverage: 0.9, kl: 0.01 },
  ...{ sampledTokens: 100, trainedTokens: 90, rows: 70, loss: 0, gradientNorm: 0, entropy: 0 },
  leftOut: [{ reason: "undelivered", tokens: 10 }],
  logprobMismatchMax: 0,
  seconds: { wall: 9, harness: 4, tools: 1, grading: 2, training: 2.5 },
};

/** Everything that was shown, in order. */
function show(events: readonly RunEvent[]): string[] {
  const shown: string[] = [];
  const output = {
    line: (text: string) => shown.push(text),
    bar: (label: string, total: number) => {
      shown.push(`${label} 0/${total}`);
      return {
        update: (done: number, text: string) => shown.push(`${done} ${text}`),
        end: () => shown.push("end"),
      };
    },
  } as unknown as Output;
  const tell = createRunProgress(output, { steps: 12, groupsPerStep: 4 });
  for (const event of events) tell(event);
  return shown;
}

function attemptEnd(score: number, done: number): RunEvent {
  const record = { verdict: { score } };
  return { type: "attempt-end", phase: "train", record, done, total: 2 } as unknown as RunEvent;
}

describe("createRunProgress", () => {
  it("shows a bar per phase that counts passes, and a line per step with what was left out", () => {
    expect(
      show([
        { type: "phase-start", phase: "train", total: 2 },
        attemptEnd(1, 1),
        { type: "attempt-discarded", phase: "train", reason: "sandbox-failed" },
        attemptEnd(0.5, 2),
        { type: "step-end", report },
        { type: "phase-end", phase: "train", seconds: 1 },
      ]),
    ).toEqual([
      "Training attempts 0/2",
      "1 1 passed",
      "  an attempt is run again: sandbox-failed",
      "2 1 passed",
      "step  3/12  reward 0.500  pass 25.0 %  signal 1/4  coverage 0.900  kl 0.0100  tokens 90/100  left out: undelivered 10  unique 70  11.5 s",
      "end",
    ]);
  });
});

describe("summaryText", () => {
  const counted = {
    ...{ heldOutFamily: null, coverage: 0.9, trainedTokens: 90, sampledTokens: 100 },
    leftOut: [
      { reason: "undelivered", tokens: 7 },
      { reason: "forked", tokens: 3 },
    ],
    discarded: { tokens: 12, reasons: { infrastructure: 5, interrupted: 7 } },
  };

  it("has a row per set that was evaluated, in points with the interval of the gain", () => {
    const passAt1 = { tasks: 64, before: 0.25, after: 0.5, gainCi95: [0.1, 0.4] as const };
    const text = summaryText({ ...counted, passAt1 } as unknown as RunSummary);
    const [, row = "", next] = text.split("\n");
    expect(row).toMatch(/^held-out .* 64 +25\.0 % +50\.0 % +\+25\.0 +\+10\.0 to \+40\.0$/);
    expect(next).toMatch(/^coverage /);
  });

  it("says what was trained, what was left out and why, and what was discarded", () => {
    const text = summaryText({ ...counted, passAt1: null } as unknown as RunSummary);
    expect(text).toBe(
      "coverage 0.9000 (90 of 100 sampled tokens); left out: undelivered 7, forked 3\n" +
        "discarded tokens 12 (infrastructure 5, interrupted 7)\n",
    );
    const clean = {
      ...counted,
      ...{ passAt1: null, coverage: 1, trainedTokens: 100, leftOut: [] },
      discarded: { tokens: 0, reasons: {} },
    };
    expect(summaryText(clean as unknown as RunSummary)).toBe(
      "coverage 1.0000 (100 of 100 sampled tokens)\ndiscarded tokens 0\n",
    );
  });

  it("says so when no step had anything to learn from", () => {
    const run = { ...counted, passAt1: null, steps: 4 };
    const text = (stepsWithSignal: number): string =>
      summaryText({ ...run, stepsWithSignal } as unknown as RunSummary);
    expect(text(0)).toMatch(/Nothing was learned: in no group did the attempts score differently/);
    expect(text(1)).not.toMatch(/Nothing was learned/);
  });
});
