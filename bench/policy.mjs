/**
 * Speed of the tiny policy's shapes on the CPU backend: latency of a decode step, and one training step of a trie.
 * `pnpm bench policy [threads]`.
 */
import { createPolicy, createWasmBackend } from "../packages/compute/src/index.ts";

const threads = Number(process.argv[2] ?? 2);
const config = {
  architecture: "qwen3",
  vocabularySize: 2048,
  width: 128,
  intermediateWidth: 384,
  layers: 4,
  heads: 4,
  keyValueHeads: 2,
  headWidth: 32,
  normEpsilon: 1e-6,
  ropeTheta: 1e6,
  maxPositions: 16384,
  tiedEmbeddings: true,
};
const backend = await createWasmBackend({ threads });
const policy = createPolicy(config, backend, 1);
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const time = async (rounds, run) => {
  const milliseconds = [];
  for (let i = 0; i < rounds; i += 1) {
    const start = performance.now();
    await run();
    milliseconds.push(performance.now() - start);
  }
  return { median: median(milliseconds), best: Math.min(...milliseconds) };
};
const show = (name, { median: m, best }, note = "") =>
  console.log(`${name.padEnd(48)} median ${m.toFixed(2)} ms, best ${best.toFixed(2)} ms${note}`);

console.log(`${policy.parameterCount} parameters, ${threads} threads`);
const context = 1500;
for (const batch of [1, 8, 16, 32]) {
  const stride = context + 64;
  const caches = policy.allocateCaches(batch * stride);
  const ids = new Int32Array(batch);
  const logprobs = new Float32Array(batch);
  const uniforms = new Float32Array(batch).fill(0.5);
  const rows = Int32Array.from({ length: batch }, (_, i) => i);
  const plan = {
    rowStarts: rows,
    rowCounts: new Int32Array(batch).fill(1),
    selfSlots: rows.map((i) => i * stride + context),
    spanOffsets: Int32Array.from({ length: batch + 1 }, (_, i) => i),
    spanSlots: rows.map((i) => i * stride),
    spanLengths: new Int32Array(batch).fill(context),
  };
  const step = async () => {
    const logits = policy.decode({
      tokenIds: ids,
      positions: new Int32Array(batch).fill(context),
      slots: plan.selfSlots,
      plan,
      caches,
      logitRows: rows,
    });
    await backend.sample(ids, logprobs, logits, uniforms, config.vocabularySize, 1);
    backend.free(logits);
  };
  await time(20, step);
  const result = await time(60, step);
  show(
    `decode, batch ${batch}, context ${context}`,
    result,
    `, ${((batch / result.median) * 1000).toFixed(0)} tokens/s`,
  );
  for (const cache of caches) backend.free(cache);
}

/** A trie like a group of attempts: a prompt, then `attempts` branches of tokens, a third of them sampled. */
const prompt = 2000;
const attempts = 8;
const each = 500;
const rows = prompt + attempts * each;
const position = (row) => (row < prompt ? row : prompt + ((row - prompt) % each));
const trie = {
  tokenIds: Int32Array.from({ length: rows }, (_, i) => (i * 7919) % config.vocabularySize),
  positions: Int32Array.from({ length: rows }, (_, i) => position(i)),
  parentRows: Int32Array.from({ length: rows }, (_, i) =>
    i >= prompt && (i - prompt) % each === 0 ? prompt - 1 : i - 1,
  ),
  segmentStarts: Int32Array.from({ length: attempts + 1 }, (_, s) =>
    s === 0 ? 0 : prompt + (s - 1) * each,
  ),
  segmentParents: Int32Array.from({ length: attempts + 1 }, (_, s) => (s === 0 ? -1 : 0)),
};
const termRows = [];
for (let row = prompt; row < rows; row += 1) if (row % 3 === 0) termRows.push(row);
const terms = {
  rows: Int32Array.from(termRows),
  targetIds: Int32Array.from(termRows, (row) => (row * 31) % config.vocabularySize),
};
const forwards = [];
const backwards = [];
const updates = [];
for (let i = 0; i < 5; i += 1) {
  const t0 = performance.now();
  const pass = await policy.forward(trie, terms, { temperature: 1, keepForBackward: true });
  const t1 = performance.now();
  await pass.backward(new Float32Array(termRows.length).fill(-1 / termRows.length));
  const t2 = performance.now();
  await policy.update({ learningRate: 1e-4, maxGradientNorm: 1 });
  forwards.push(t1 - t0);
  backwards.push(t2 - t1);
  updates.push(performance.now() - t2);
}
for (const [name, values] of Object.entries({ forwards, backwards, updates }))
  show(`trie of ${rows} rows, ${name}`, { median: median(values), best: Math.min(...values) });
const cpu = process.cpuUsage();
console.log(`processor time ${((cpu.user + cpu.system) / 1e6).toFixed(1)} s`);
await policy[Symbol.asyncDispose]();
await backend[Symbol.asyncDispose]();
