/** The same batches give the same weights, bit for bit, with 1, 2 or 4 threads; and nearly those of the reference. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createWasmBackend, type ModelPolicy } from "@gimbal-rl/compute";
import type { TrainingBatch } from "@gimbal-rl/core";
import { expect, test } from "vitest";
import { trainStep } from "../src/train-step.js";
import { digestWeights } from "../src/weights-digest.js";
import { createToyPolicy, toyBatches } from "./toy.js";

const options = { learningRate: 1e-2, maxGradientNorm: 1, epochs: 2, minibatches: 2 };

test("replayed batches train to bit-identical weights with 1, 2 or 4 threads", async () => {
  let stored: TrainingBatch[] | null = null;
  const digests: string[] = [];
  for (const threads of [1, 2, 4]) {
    const backend = await createWasmBackend({ threads });
    try {
      const policy = createToyPolicy(1, backend);
      // Sampled once, with one thread, and replayed: the mismatch is zero for every number of threads.
      stored ??= await toyBatches(policy, 1, 24);
      const metrics = await trainStep(policy, stored, options);
      expect(metrics.logprobMismatchMax).toBe(0);
      expect(metrics.updates).toBe(4);
      digests.push(await digestWeights(policy));
    } finally {
      await backend[Symbol.asyncDispose]();
    }
  }
  expect(new Set(digests).size).toBe(1);
});

/** Flips the lowest bit of the last weight, through a saved folder. */
async function flipOneBit(policy: ModelPolicy): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "gimbal-bit-"));
  try {
    await policy.save(dir, { optimizer: false });
    const path = join(dir, "model.safetensors");
    const bytes = await readFile(path);
    bytes[bytes.length - 4] ^= 1;
    await writeFile(path, bytes);
    await policy.load(dir, { optimizer: false });
  } finally {
    await rm(dir, { recursive: true });
  }
}

test("one flipped bit of a weight shows as a mismatch", async () => {
  const backend = await createWasmBackend({ threads: 1 });
  try {
    const policy = createToyPolicy(1, backend);
    const batches = await toyBatches(policy, 1);
    await flipOneBit(policy);
    const metrics = await trainStep(policy, batches, options);
    expect(metrics.logprobMismatchMax).toBeGreaterThan(0);
  } finally {
    await backend[Symbol.asyncDispose]();
  }
});
