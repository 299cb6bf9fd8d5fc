import type { TrainingBatch } from "@gimbal-rl/core";
import { sumOfWeights } from "@gimbal-rl/objective";
import { expect, test } from "vitest";
import { createToyPolicy, toyBatches } from "../test/toy.js";
import { trainStep } from "./train-step.js";
import { digestWeights } from "./weights-digest.js";

const learningRate = 1e-2;
const kl = { clipLow: 0.2, clipHigh: 0.2, klCoefficient: 0.1 };

function withAdvantages(batch: TrainingBatch, value: number): TrainingBatch {
  return {
    ...batch,
    terms: { ...batch.terms, advantages: batch.terms.advantages.map(() => value) },
  };
}

test("before any update the mismatch is exactly zero and the ratios are exactly one", async () => {
  const policy = createToyPolicy();
  const metrics = await trainStep(policy, await toyBatches(policy, 1), { learningRate });
  expect(metrics).toMatchObject({ logprobMismatchMax: 0, logprobMismatchMean: 0, updates: 1 });
  expect(metrics).toMatchObject({ ratioMean: 1, approxKlK3: 0, clipFraction: 0 });
  expect(metrics.gradientNorm).toBeGreaterThan(0);
});

test("weights that differ from those that sampled show as a mismatch", async () => {
  const batches = await toyBatches(createToyPolicy(1), 1);
  const metrics = await trainStep(createToyPolicy(2), batches, { learningRate });
  expect(metrics.logprobMismatchMax).toBeGreaterThan(0);
});

test("a step raises the probability of tokens with a positive advantage over the others", async () => {
  const policy = createToyPolicy();
  const batches = await toyBatches(policy, 1);
  await trainStep(policy, batches, { learningRate });
  const after = await toyBatches(policy, 1);
  let gained = 0;
  batches.forEach(({ terms }, b) => {
    terms.advantages.forEach((advantage, i) => {
      gained += advantage * (after[b].terms.behaviourLogprobs[i] - terms.behaviourLogprobs[i]);
    });
  });
  expect(gained).toBeGreaterThan(0);
});

test("cutting a step into micro-batches changes the gradient by rounding only", async () => {
  const gradients = async (maxRows?: number): Promise<Float32Array> => {
    const policy = createToyPolicy();
    const batches = await toyBatches(policy, 1, maxRows);
    expect(batches.length > 1).toBe(maxRows !== undefined);
    const before = await policy.readWeights();
    // One plain gradient step in disguise: AdamW's first moment alone cannot be read, so compare the norms and weights.
    const metrics = await trainStep(policy, batches, { learningRate: 1e-3, epsilon: 1 });
    const after = await policy.readWeights();
    const moved = [...after].flatMap(([name, values]) => {
      const old = before.get(name) ?? values;
      return Array.from(values, (value, i) => value - old[i]);
    });
    return Float32Array.from([metrics.gradientNorm, metrics.loss, ...moved]);
  };
  const whole = await gradients();
  const cut = await gradients(24);
  let difference = 0;
  whole.forEach((value, i) => {
    difference = Math.max(difference, Math.abs(value - cut[i]));
  });
  expect(difference).toBeLessThan(1e-5 * Math.max(...whole));
});

test("the denominator is the weight of the whole step", async () => {
  const policy = createToyPolicy();
  const batches = (await toyBatches(policy, 1, 24)).map((batch) => withAdvantages(batch, 1));
  const { loss, terms } = await trainStep(policy, batches, { learningRate });
  expect(loss).toBeCloseTo(-1, 6);
  expect(terms).toBe(sumOfWeights(batches.map((batch) => batch.terms.weights)));
});

test("a step without any advantage measures and leaves every weight alone", async () => {
  const policy = createToyPolicy();
  await trainStep(policy, await toyBatches(policy, 1), { learningRate });
  const before = await digestWeights(policy);
  const batches = (await toyBatches(policy, 2)).map((batch) => withAdvantages(batch, 0));
  const metrics = await trainStep(policy, batches, { learningRate, weightDecay: 0.1 });
  expect(metrics).toMatchObject({ updates: 0, gradientNorm: 0, logprobMismatchMax: 0, loss: 0 });
  expect(await digestWeights(policy)).toBe(before);
});

test("several epochs and minibatches update several times and drift off policy", async () => {
  const policy = createToyPolicy();
  const batches = await toyBatches(policy, 1, 24);
  const metrics = await trainStep(policy, batches, { learningRate, epochs: 3, minibatches: 2 });
  expect(metrics).toMatchObject({ updates: 6, logprobMismatchMax: 0 });
  expect(metrics.approxKlK3).toBeGreaterThan(0);
  expect(metrics.rows).toBe(batches.reduce((sum, { trie }) => sum + trie.tokenIds.length, 0));
});

test("the KL pulls towards the reference and needs one", async () => {
  const policy = createToyPolicy(1);
  const reference = createToyPolicy(2);
  const batches = (await toyBatches(policy, 1)).map((batch) => withAdvantages(batch, 0));
  const options = { learningRate, objective: kl, reference };
  const first = await trainStep(policy, batches, options);
  let last = first;
  for (let i = 0; i < 5; i += 1) last = await trainStep(policy, batches, options);
  expect(first.referenceKl).toBeGreaterThan(0);
  expect(last.referenceKl).toBeLessThan(first.referenceKl ?? 0);
  await expect(trainStep(policy, batches, { learningRate, objective: kl })).rejects.toMatchObject({
    code: "config-invalid",
  });
});

test("a step of nothing does nothing", async () => {
  const policy = createToyPolicy();
  const metrics = await trainStep(policy, [], { learningRate });
  expect(metrics).toMatchObject({ terms: 0, rows: 0, updates: 0, loss: 0, ratioMean: 1 });
});

test("a loss that is not a number is an error", async () => {
  const policy = createToyPolicy();
  const batches = (await toyBatches(policy, 1)).map((batch) => withAdvantages(batch, Number.NaN));
  await expect(trainStep(policy, batches, { learningRate })).rejects.toMatchObject({
    code: "non-finite",
  });
});
