import { createRandom } from "@gimbal-rl/core";
import { expect, test } from "vitest";
import { type PolicyLossInput, policyLoss, sumOfWeights } from "./policy-loss.js";
import { clippedTerm, klTerm } from "./policy-terms.js";
import { grpo } from "./presets.js";
import { sftLoss } from "./sft-loss.js";

const clip = { clipLow: 0.2, clipHigh: 0.2 };
const clipHigher = { clipLow: 0.2, clipHigh: 0.28 };

test.each([
  [1.5, 1, clip, 1.2],
  [1.5, 1, clipHigher, 1.28],
  [1.5, -1, clip, -1.5],
  [0.5, 1, clip, 0.5],
  [0.5, -1, clip, -0.8],
])(
  "ratio %d with advantage %d has the golden objective (%j -> %d)",
  (ratio, advantage, options, golden) => {
    expect(-clippedTerm(Math.log(ratio), advantage, options).loss).toBeCloseTo(golden, 12);
  },
);

test("k3 has the golden value and its expectation is the exact divergence", () => {
  const policy = [0.4, 0.6];
  const value = (p: number): number => klTerm(Math.log(p), Math.log(0.5)).value;
  expect(value(0.4)).toBeCloseTo(0.026856, 6);
  const expected = policy.reduce((sum, p) => sum + p * value(p), 0);
  const exact = policy.reduce((sum, p) => sum + p * Math.log(p / 0.5), 0);
  expect(expected).toBeCloseTo(exact, 12);
  expect(exact).toBeCloseTo(0.0201355, 7);
});

function randomInput(seed: number, count: number, klCoefficient: number): PolicyLossInput {
  const random = createRandom(seed);
  const behaviourLogprobs = Array.from({ length: count }, () => -3 * random.next() - 0.1);
  const near = (): number[] => behaviourLogprobs.map((value) => value + random.next() - 0.5);
  const weights = behaviourLogprobs.map(() => 0.5 + random.next());
  return {
    logprobs: near(),
    behaviourLogprobs,
    referenceLogprobs: near(),
    advantages: behaviourLogprobs.map((_, i) => (i % 7 === 0 ? 0 : 2 * random.next() - 1)),
    weights,
    denominator: sumOfWeights([weights]),
    options: { ...clipHigher, klCoefficient },
  };
}

test.each([0, 0.05])(
  "the gradient equals finite differences (KL coefficient %d)",
  (coefficient) => {
    const input = randomInput(3, 200, coefficient);
    const { gradLogprobs } = policyLoss(input);
    const step = 1e-6;
    let largest = 0;
    for (let i = 0; i < 200; i += 1) {
      const moved = (by: number): number => {
        const logprobs = Array.from(input.logprobs);
        logprobs[i] += by;
        return policyLoss({ ...input, logprobs }).loss;
      };
      const numeric = (moved(step) - moved(-step)) / (2 * step);
      largest = Math.max(largest, Math.abs(numeric - gradLogprobs[i]));
    }
    expect(largest).toBeLessThan(1e-8);
    expect(gradLogprobs.filter((value) => value !== 0).length).toBeGreaterThan(50);
  },
);

test("micro-batches with the global denominator add up to the whole batch", () => {
  const input = randomInput(5, 90, 0.01);
  const whole = policyLoss(input);
  const part = (from: number, to: number): ReturnType<typeof policyLoss> => {
    const cut = (values: ArrayLike<number>): number[] => Array.from(values).slice(from, to);
    return policyLoss({
      ...input,
      logprobs: cut(input.logprobs),
      behaviourLogprobs: cut(input.behaviourLogprobs),
      referenceLogprobs: cut(input.referenceLogprobs ?? []),
      advantages: cut(input.advantages),
      weights: cut(input.weights),
    });
  };
  const parts = [part(0, 13), part(13, 80), part(80, 90)];
  expect(parts.reduce((sum, { loss }) => sum + loss, 0)).toBeCloseTo(whole.loss, 12);
  expect(parts.flatMap(({ gradLogprobs }) => [...gradLogprobs])).toEqual([...whole.gradLogprobs]);
});

test("token-mean of lengths 2 and 8 with losses 1 and 0.5 is 0.60", () => {
  const logprobs = [...Array(2).fill(-1), ...Array(8).fill(-0.5)];
  const weights = logprobs.map(() => 1);
  expect(sftLoss({ logprobs, weights, denominator: sumOfWeights([weights]) }).loss).toBeCloseTo(
    0.6,
    12,
  );
});

test("on policy the loss is minus the mean advantage and every gradient is minus the advantage", () => {
  const input = { ...randomInput(9, 8, 0), options: grpo.policy };
  const { gradLogprobs } = policyLoss({ ...input, logprobs: input.behaviourLogprobs });
  gradLogprobs.forEach((value, i) => {
    expect(value).toBeCloseTo((-input.advantages[i] * input.weights[i]) / input.denominator, 7);
  });
});

test("absurd ratios stay finite", () => {
  const result = policyLoss({
    logprobs: [0, -500],
    behaviourLogprobs: [-500, 0],
    referenceLogprobs: [-1000, 0],
    advantages: [-1, -1],
    weights: [1, 1],
    denominator: 2,
    options: { ...clip, klCoefficient: 0.1 },
  });
  expect(Number.isFinite(result.loss)).toBe(true);
  expect(result.gradLogprobs.every(Number.isFinite)).toBe(true);
});

test("shapes are checked once, with every length named", () => {
  const input = randomInput(1, 3, 0);
  expect(() => policyLoss({ ...input, weights: [1] })).toThrowError(/logprobs 3.*weights 1/);
  expect(() => policyLoss({ ...input, denominator: 0 })).toThrowError(/denominator is 0/);
  const { referenceLogprobs: _, ...without } = randomInput(1, 3, 0.1);
  expect(() => policyLoss(without)).toThrowError(
    expect.objectContaining({ code: "shape-mismatch" }),
  );
  expect(() => sftLoss({ logprobs: [1], weights: [], denominator: 1 })).toThrowError(/weights 0/);
});

test("the supervised gradient equals finite differences", () => {
  const input = { logprobs: [-1, -2, -0.5], weights: [1, 0.5, 2], denominator: 3.5 };
  const { gradLogprobs } = sftLoss(input);
  input.logprobs.forEach((_, i) => {
    const moved = (by: number): number =>
      sftLoss({ ...input, logprobs: input.logprobs.map((v, j) => (i === j ? v + by : v)) }).loss;
    expect((moved(1e-4) - moved(-1e-4)) / 2e-4).toBeCloseTo(gradLogprobs[i], 6);
  });
});
