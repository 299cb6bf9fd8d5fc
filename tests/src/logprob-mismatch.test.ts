/**
 * Law: on the CPU backend the trainer's log-probability of every sampled token equals the recorded one, bit for bit;
 * and the mismatch is a measurement: one flipped bit of one weight shows.
 */
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createWasmBackend, loadPolicy } from "@gimbal-rl/compute";
import type { TrainingBatch } from "@gimbal-rl/core";
import { buildStepBatches, defaultRunConfig } from "@gimbal-rl/run";
import { trainStep } from "@gimbal-rl/trainer";
import { afterAll, beforeAll, expect, test } from "vitest";
import { collectScribe } from "./support/collect-scribe.js";
import { editTensors, writeScribePolicy } from "./support/scribe-policy.js";

let root = "";
let modelDir = "";
let vocabularySize = 0;
let batches: readonly TrainingBatch[];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "gimbal-mismatch-"));
  modelDir = join(root, "model");
  await writeScribePolicy(modelDir);
  const { groups, store } = await collectScribe(modelDir, { groups: 2, size: 2 });
  const config = { ...defaultRunConfig, seed: 5, facts: {} };
  ({ batches } = await buildStepBatches(groups, store, config));
});

afterAll(() => rm(root, { recursive: true, force: true }));

async function mismatchOf(dir: string): Promise<number> {
  await using backend = await createWasmBackend({ threads: 1 });
  await using policy = await loadPolicy(dir, backend);
  const metrics = await trainStep(policy, batches, { learningRate: 1e-3 });
  expect(metrics.updates).toBe(1);
  vocabularySize = policy.config.vocabularySize;
  return metrics.logprobMismatchMax;
}

test("the trainer's forward pass reproduces what the engine recorded, exactly", async () => {
  expect(batches.reduce((sum, { terms }) => sum + terms.rows.length, 0)).toBeGreaterThan(20);
  expect(await mismatchOf(modelDir)).toBe(0);
});

/** A copy of the model with one bit of one weight flipped. */
async function flip(
  name: string,
  bit: number,
  choose: (values: Float32Array) => number,
): Promise<string> {
  const dir = join(root, `${name}-${bit}`);
  await cp(modelDir, dir, { recursive: true });
  await editTensors(join(dir, "model.safetensors"), (tensor) => {
    const values = tensor(name);
    const at = choose(values);
    const bits = new Uint32Array(values.buffer);
    bits[at] = (bits[at] ?? 0) ^ (1 << bit);
  });
  return dir;
}

const largest = (values: Float32Array): number =>
  values.reduce((best, value, i) => (value > (values[best] ?? 0) ? i : best), 0);

test("the lowest bit of the weight that decides the first sampled token is seen", async () => {
  const token = batches[0]?.terms.targetIds[0] ?? 0;
  const dir = await flip("lm_head.weight", 0, (values) => {
    const width = values.length / vocabularySize;
    return token * width + largest(values.subarray(token * width, (token + 1) * width));
  });
  expect(await mismatchOf(dir)).toBeGreaterThan(0);
});

test.each(["model.embed_tokens.weight", "model.layers.0.self_attn.v_proj.weight"])(
  "a flipped bit in %s is seen",
  async (name) => {
    expect(await mismatchOf(await flip(name, 20, largest))).toBeGreaterThan(0);
  },
);
