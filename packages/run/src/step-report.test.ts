import { asId, type PolicyVersion } from "@gimbal-rl/core";
import type { StepRecord } from "@gimbal-rl/trainer";
import { describe, expect, it } from "vitest";
import { toStepReport } from "./step-report.js";

const record: StepRecord = {
  step: 3,
  policyVersion: asId<PolicyVersion>("step-3"),
  atMs: 1,
  seconds: 2.5,
  metrics: { rows: 10, loss: -0.5, gradientNorm: 0.25, entropy: null, logprobMismatchMax: 0 },
  extra: {
    ...{ reward: 0.5, passRate: 0.25, attempts: 8, groupsWithSignal: 1 },
    ...{ coverage: 1, kl: 0.01, sampledTokens: 20, trainedTokens: 20 },
    seconds: { wall: 9, harness: 4, tools: 1, grading: 2 },
  },
};

describe("toStepReport", () => {
  it("joins what the trainer measured with what the run added", () => {
    expect(toStepReport(record)).toEqual({
      ...{ step: 3, reward: 0.5, passRate: 0.25, attempts: 8, groupsWithSignal: 1 },
      ...{ coverage: 1, kl: 0.01, sampledTokens: 20, trainedTokens: 20 },
      ...{ rows: 10, loss: -0.5, gradientNorm: 0.25, entropy: null, logprobMismatchMax: 0 },
      seconds: { wall: 9, harness: 4, tools: 1, grading: 2, training: 2.5 },
    });
  });

  it("reads the same from disk", () => {
    const stored = JSON.parse(JSON.stringify(record)) as StepRecord;
    expect(toStepReport(stored)).toEqual(toStepReport(record));
  });
});
