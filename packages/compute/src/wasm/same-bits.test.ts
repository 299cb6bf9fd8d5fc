/** The law of the backend at the shapes of a model: threads, batching and span borders never change a bit. */
import { createRandom } from "@gimbal-rl/core";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { AttentionPlan, Backend, Tensor } from "../backend.js";
import { createPolicy } from "../model/policy.js";
import type { ModelConfig } from "../policy.js";
import { createWasmBackend } from "./wasm-backend.js";

const config: ModelConfig = {
  architecture: "qwen3",
  vocabularySize: 331,
  width: 72,
  intermediateWidth: 100,
  layers: 2,
  heads: 6,
  keyValueHeads: 2,
  headWidth: 12,
  normEpsilon: 1e-6,
  ropeTheta: 10_000,
  maxPositions: 1024,
  tiedEmbeddings: true,
};

const random = createRandom(7);
const uniform = (): number => random.next() * 2 - 1;
const integers = (length: number, limit: number): Int32Array =>
  Int32Array.from({ length }, () => Math.floor(random.next() * limit));

/** A prompt of 150 tokens, three branches of 90, each with a leaf of 37. */
function trie() {
  const lengths = [150, 90, 90, 90, 37, 37, 37];
  const parents = [-1, 0, 0, 0, 1, 2, 3];
  const starts: number[] = [];
  const depths: number[] = [];
  const positions: number[] = [];
  const parentRows: number[] = [];
  let row = 0;
  lengths.forEach((length, s) => {
    const parent = parents[s];
    const depth = parent < 0 ? 0 : depths[parent] + lengths[parent];
    starts.push(row);
    depths.push(depth);
    for (let i = 0; i < length; i += 1) {
      positions.push(depth + i);
      const above = parent < 0 ? -1 : starts[parent] + lengths[parent] - 1;
      parentRows.push(i === 0 ? above : row - 1);
      row += 1;
    }
  });
  return {
    tokenIds: integers(row, config.vocabularySize),
    positions: Int32Array.from(positions),
    parentRows: Int32Array.from(parentRows),
    segmentStarts: Int32Array.from(starts),
    segmentParents: Int32Array.from(parents),
  };
}

const tree = trie();
const termRows = Int32Array.from({ length: 300 }, (_, i) => 120 + i);
const terms = { rows: termRows, targetIds: integers(termRows.length, config.vocabularySize) };

let alone: Backend;
beforeAll(async () => {
  alone = await createWasmBackend({ threads: 1 });
});
afterAll(() => alone[Symbol.asyncDispose]());

async function train(backend: Backend) {
  const policy = createPolicy(config, backend, 5);
  const logprobs: Float32Array[] = [];
  for (let step = 0; step < 2; step += 1) {
    const options = { temperature: 0.8, keepForBackward: true };
    const pass = await policy.forward(tree, terms, options);
    logprobs.push(pass.logprobs.slice());
    await pass.backward(pass.logprobs.map((value, i) => Math.sin(i) / (1 - value)));
    await policy.update({ learningRate: 1e-2, maxGradientNorm: 1 });
  }
  const weights = await policy.readWeights();
  await policy[Symbol.asyncDispose]();
  return { logprobs, weights };
}

it("trains to the same weights with 1, 2 and 4 threads", async () => {
  const expected = await train(alone);
  for (const threads of [2, 4]) {
    const backend = await createWasmBackend({ threads });
    const found = await train(backend);
    expect(found.logprobs).toEqual(expected.logprobs);
    for (const [name, values] of expected.weights) expect(found.weights.get(name)).toEqual(values);
    await backend[Symbol.asyncDispose]();
  }
}, 60_000);

it("writes gradients of logits within a row alone, however threads meet at its end", async () => {
  // Rows that end inside a group of four lanes, each as long as a chunk of work: one row a thread at a time.
  const vocabulary = 15_003;
  const rows = 64;
  const logits = Float32Array.from({ length: rows * vocabulary }, (_, i) => Math.sin(i));
  const stale = new Float32Array(logits.length).fill(7);
  const each = Int32Array.from({ length: rows }, (_, r) => r);
  const backward = (backend: Backend) => {
    const [given, sums, out] = [logits.length, rows, rows].map((n) => backend.allocate(n));
    const gradient = backend.allocate(logits.length);
    const [at, targets] = [each, each].map((ids) => backend.allocateInts(ids));
    backend.write(given, logits);
    backend.write(
      out,
      Float32Array.from(each, (r) => Math.cos(r)),
    );
    backend.logSumExp(sums, given, vocabulary, 1);
    return () => {
      backend.write(gradient, stale);
      backend.logprobsBackward(gradient, out, given, sums, at, targets, vocabulary, 1);
      return backend.read(gradient);
    };
  };
  const expected = await backward(alone)();
  const backend = await createWasmBackend({ threads: 4 });
  const again = backward(backend);
  const differing: string[] = [];
  for (let round = 0; round < 60; round += 1) {
    const found = await again();
    const at = found.findIndex((value, i) => value !== expected[i]);
    if (at >= 0) differing.push(`row ${Math.floor(at / vocabulary)} column ${at % vocabulary}`);
  }
  expect(differing).toEqual([]);
  await backend[Symbol.asyncDispose]();
}, 60_000);

it("decodes token by token the log-probabilities that it trains", async () => {
  const policy = createPolicy(config, alone, 5);
  const pass = await policy.forward(tree, terms, { temperature: 0.8, keepForBackward: false });
  // One branch, prefilled in uneven chunks and then decoded row by row, in scattered slots.
  const branch = [
    ...Array.from({ length: 150 }, (_, i) => i),
    ...Array.from({ length: 90 }, (_, i) => 240 + i),
  ];
  const shift = 5;
  const caches = policy.allocateCaches(400);
  const slotOf = (i: number) => (i < 61 ? shift + i : shift + 100 + i);
  const logprobOf = new Map(Array.from(termRows, (row, t) => [row, t]));
  const cuts = [0, 61, 130, 139];
  for (let i = 140; i <= branch.length; i += 1) cuts.push(i);
  let compared = 0;
  for (let c = 0; c + 1 < cuts.length; c += 1) {
    const rows = branch.slice(cuts[c], cuts[c + 1]);
    const spans = [
      { slot: shift, length: Math.min(61, cuts[c]) },
      { slot: slotOf(61), length: Math.max(0, cuts[c] - 61) },
    ].filter((span) => span.length > 0);
    const plan: AttentionPlan = {
      rowStarts: Int32Array.of(0),
      rowCounts: Int32Array.of(rows.length),
      selfSlots: Int32Array.of(slotOf(cuts[c])),
      spanOffsets: Int32Array.of(0, spans.length),
      spanSlots: Int32Array.from(spans, (span) => span.slot),
      spanLengths: Int32Array.from(spans, (span) => span.length),
    };
    const logits: Tensor = policy.decode({
      tokenIds: Int32Array.from(rows, (row) => tree.tokenIds[row]),
      positions: Int32Array.from(rows, (row) => tree.positions[row]),
      slots: Int32Array.from(rows, (_, i) => slotOf(cuts[c] + i)),
      plan,
      caches,
      logitRows: Int32Array.of(rows.length - 1),
    });
    const term = logprobOf.get(rows.at(-1) ?? -1);
    if (term !== undefined) {
      const sums = alone.allocate(1);
      const out = alone.allocate(1);
      alone.logSumExp(sums, logits, config.vocabularySize, 0.8);
      const [zero, target] = [0, terms.targetIds[term]].map((id) =>
        alone.allocateInts(Int32Array.of(id)),
      );
      alone.gatherLogprobs(out, logits, sums, zero, target, config.vocabularySize, 0.8);
      expect((await alone.read(out))[0]).toBe(pass.logprobs[term]);
      compared += 1;
    }
    alone.free(logits);
  }
  expect(compared).toBeGreaterThan(50);
  pass.free();
  await policy[Symbol.asyncDispose]();
}, 60_000);

it("sees the same attention through one span, many spans and scattered slots", async () => {
  const shape = { heads: 4, keyValueHeads: 2, headWidth: 32 };
  const keys = 333;
  const query = Float32Array.from({ length: 128 }, uniform);
  const keyValues = Float32Array.from({ length: keys * 64 }, uniform);
  const results: Float32Array[] = [];
  for (const cuts of [[0], [0, 1, 2, 3, 50, 51, 128], [0, 16, 32, 48, 300], [0, 7, 77, 177, 331]]) {
    const cache = alone.allocateCache(1000, shape);
    const slots = new Int32Array(keys);
    const spans = cuts.map((first, i) => ({ first, last: cuts[i + 1] ?? keys - 1 }));
    // Later spans lie lower in the cache, at odd distances.
    let top = 991;
    const spanSlots = spans.map(({ first, last }) => {
      top -= last - first + 3;
      for (let i = first; i < last; i += 1) slots[i] = top + i - first;
      return top;
    });
    slots[keys - 1] = 995;
    const [k, v, q, out] = [keys * 64, keys * 64, 128, 128].map((n) => alone.allocate(n));
    const sums = alone.allocate(4);
    alone.write(k, keyValues);
    alone.write(v, keyValues.toReversed());
    alone.write(q, query);
    alone.writeCache(cache, k, v, alone.allocateInts(slots));
    const plan: AttentionPlan = {
      rowStarts: Int32Array.of(0),
      rowCounts: Int32Array.of(1),
      selfSlots: Int32Array.of(995),
      spanOffsets: Int32Array.of(0, spans.length),
      spanSlots: Int32Array.from(spanSlots),
      spanLengths: Int32Array.from(spans, ({ first, last }) => last - first),
    };
    alone.attention(out, sums, q, cache, plan, shape);
    results.push(await alone.read(out), await alone.read(sums));
  }
  for (let i = 2; i < results.length; i += 1) expect(results[i]).toEqual(results[i % 2]);
});
