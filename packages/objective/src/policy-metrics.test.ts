import { expect, test } from "vitest";
import { policyMetrics } from "./policy-metrics.js";
import { grpo } from "./presets.js";

const options = grpo.policy;

test("on policy nothing is clipped, nothing differs and the sample is fully effective", () => {
  const logprobs = [-1, -2, -3];
  const metrics = policyMetrics({
    logprobs,
    behaviourLogprobs: logprobs,
    advantages: [1, -1, 0],
    weights: [1, 1, 1],
    options,
  });
  expect(metrics).toEqual({
    terms: 3,
    clipFraction: 0,
    clipLowFraction: 0,
    clipHighFraction: 0,
    approxKlK1: 0,
    approxKlK3: 0,
    referenceKl: null,
    ratioMean: 1,
    ratioMax: 1,
    mismatchMean: 0,
    mismatchMax: 0,
    effectiveSampleSize: 1,
    entropy: 2,
    advantageMean: 0,
    advantageAbsMean: 2 / 3,
  });
});

test("hand-computed values off policy", () => {
  const metrics = policyMetrics({
    logprobs: [Math.log(1.5) - 1, Math.log(0.5) - 1, Math.log(1.5) - 1, -1],
    behaviourLogprobs: [-1, -1, -1, -1],
    referenceLogprobs: [
      Math.log(1.5) - 1,
      Math.log(0.5) - 1,
      Math.log(1.5) - 1,
      Math.log(1.25) - 1,
    ],
    advantages: [1, -1, -1, 1],
    weights: [1, 1, 1, 1],
    options,
  });
  expect(metrics.clipHighFraction).toBe(0.25);
  expect(metrics.clipLowFraction).toBe(0.25);
  expect(metrics.clipFraction).toBe(0.5);
  expect(metrics.ratioMean).toBeCloseTo(4.5 / 4, 12);
  expect(metrics.ratioMax).toBeCloseTo(1.5, 12);
  expect(metrics.mismatchMax).toBeCloseTo(Math.log(2), 12);
  expect(metrics.approxKlK1).toBeCloseTo(-(2 * Math.log(1.5) + Math.log(0.5)) / 4, 12);
  expect(metrics.approxKlK3).toBeCloseTo(0.125 - (2 * Math.log(1.5) + Math.log(0.5)) / 4, 12);
  expect(metrics.referenceKl).toBeCloseTo((0.25 - Math.log(1.25)) / 4, 12);
  expect(metrics.effectiveSampleSize).toBeCloseTo(4.5 ** 2 / (4 * 5.75), 12);
});

test("no terms give neutral numbers", () => {
  const metrics = policyMetrics({
    logprobs: [],
    behaviourLogprobs: [],
    advantages: [],
    weights: [],
    options,
  });
  expect(metrics).toMatchObject({ terms: 0, ratioMean: 1, ratioMax: 1, effectiveSampleSize: 1 });
});
