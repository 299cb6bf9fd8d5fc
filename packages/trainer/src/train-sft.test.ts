import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSftBatches } from "@gimbal-rl/graph";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createToyPolicy, toyTrajectory } from "../test/toy.js";
import { findCheckpoints } from "./checkpoints.js";
import { readMetrics } from "./metrics-log.js";
import type { StepRecord } from "./step-record.js";
import { examplesOfStep, sftEvaluate, type TrainSftOptions, trainSft } from "./train-sft.js";
import { digestWeights } from "./weights-digest.js";

let runDir = "";
beforeEach(async () => {
  runDir = await mkdtemp(join(tmpdir(), "gimbal-sft-"));
});
afterEach(() => rm(runDir, { recursive: true, force: true }));

const examples = Array.from({ length: 10 }, (_, i) => toyTrajectory(`demo-${i}`, i));
const base: TrainSftOptions = {
  seed: 3,
  examplesPerStep: 4,
  schedule: { kind: "constant", peak: 1e-2 },
  optimizer: { maxGradientNorm: 1 },
};

test("every epoch sees every example once, in an order that depends on the seed", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 9 }), (count, per) => {
      const steps = Math.ceil(count / per);
      for (const epoch of [0, 1]) {
        const seen = Array.from({ length: steps }, (_, i) =>
          examplesOfStep(count, per, 5, epoch * steps + i + 1),
        ).flat();
        expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, i) => i));
      }
    }),
  );
  expect(examplesOfStep(20, 20, 1, 1)).not.toEqual(examplesOfStep(20, 20, 2, 1));
  expect(examplesOfStep(20, 20, 1, 1)).not.toEqual(examplesOfStep(20, 20, 1, 2));
});

test("training lowers the loss on the demonstrations", async () => {
  const policy = createToyPolicy();
  const batches = buildSftBatches(examples);
  const before = await sftEvaluate(policy, batches);
  const { last, steps } = await trainSft(policy, examples, { ...base, epochs: 8 });
  expect(steps).toBe(24);
  expect(last?.step).toBe(24);
  expect(await sftEvaluate(policy, batches)).toBeLessThan(before - 0.5);
});

test("a run stopped by its signal and continued ends in the weights of an uninterrupted one", async () => {
  const whole = createToyPolicy();
  await trainSft(whole, examples, { ...base, steps: 5 });

  const abort = new AbortController();
  const onStep = ({ step }: StepRecord): void => {
    if (step === 2) abort.abort();
  };
  const options = { ...base, steps: 5, runDir, checkpointEvery: 10 };
  const stopped = trainSft(createToyPolicy(), examples, {
    ...options,
    onStep,
    signal: abort.signal,
  });
  await expect(stopped).rejects.toMatchObject({ code: "aborted" });
  expect((await findCheckpoints(runDir)).map(({ step }) => step)).toEqual([0, 3]);

  const policy = createToyPolicy(99);
  expect((await trainSft(policy, examples, options)).steps).toBe(5);
  expect(await digestWeights(policy)).toBe(await digestWeights(whole));
  expect((await readMetrics(runDir)).map(({ step }) => step)).toEqual([1, 2, 3, 4, 5]);
  expect((await trainSft(policy, examples, options)).last).toBeNull();
});

test("evaluation runs at its steps and after the last, and lands on the record", async () => {
  const records: StepRecord[] = [];
  await trainSft(createToyPolicy(), examples, {
    ...base,
    steps: 5,
    evaluateEvery: 2,
    evaluate: async (step) => ({ copied: step * 10 }),
    onStep: (record) => records.push(record),
  });
  expect(records.map(({ extra }) => extra.copied)).toEqual([undefined, 20, undefined, 40, 50]);
});

test("batches given ready-made and a row limit lead to the same training as one trie, up to rounding", async () => {
  const losses: number[] = [];
  for (const maxRows of [undefined, 20]) {
    const { last } = await trainSft(createToyPolicy(), examples, {
      ...base,
      steps: 2,
      ...(maxRows !== undefined && { maxRows }),
    });
    losses.push(Number(last?.metrics.loss));
  }
  expect(losses[0]).toBeCloseTo(losses[1], 5);
  const batches = buildSftBatches(examples, { maxRows: 20 });
  const { last } = await trainSft(createToyPolicy(), batches, { ...base, steps: 1 });
  expect(last?.metrics.batches).toBe(4);
});

test("no examples, or neither steps nor epochs, is refused", async () => {
  const policy = createToyPolicy();
  await expect(trainSft(policy, [], { ...base, steps: 1 })).rejects.toMatchObject({
    code: "config-invalid",
  });
  await expect(trainSft(policy, examples, base)).rejects.toMatchObject({ code: "config-invalid" });
});
