/**
 * Training tokens per second of a small Qwen3-like model: our CPU backend against jax-js 0.1.25, jitted and warm, in
 * the same run. `pnpm bench compute [--threads 2] [--jax-threads 2] [--rounds 9] [--json]`.
 *
 * Both take the same weights, ids and AdamW settings; the losses of every step are printed and must agree, so that
 * both are seen to do the same work. Steps alternate, so a busy machine slows both; medians count, and the ratio.
 * jax-js gets browser-like workers (see lib/web-worker.mjs); `--jax-threads 1` is what it does in plain Node.
 */
import { parseArgs } from "node:util";
import { createPolicy, createWasmBackend } from "../packages/compute/src/index.ts";
import { installWebWorkers } from "./lib/web-worker.mjs";

const { values: flags } = parseArgs({
  options: {
    threads: { type: "string", default: "2" },
    "jax-threads": { type: "string", default: "2" },
    rounds: { type: "string", default: "9" },
    json: { type: "boolean", default: false },
  },
});
const [threads, jaxThreads, rounds] = [flags.threads, flags["jax-threads"], flags.rounds].map(
  Number,
);
const say = flags.json ? () => {} : console.log;

/** Vocabulary 1024, width 96, sequence 256, batch 8, tied embeddings: about half a million parameters. */
const config = {
  architecture: "qwen3",
  vocabularySize: 1024,
  width: 96,
  intermediateWidth: 256,
  layers: 4,
  heads: 4,
  keyValueHeads: 2,
  headWidth: 24,
  normEpsilon: 1e-6,
  ropeTheta: 10000,
  maxPositions: 256,
  tiedEmbeddings: true,
};
const [B, T, learningRate] = [8, 256, 1e-3];

let seed = 1;
const integer = (limit) => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 2 ** 32) * limit);
};
// A sequence that can be learnt: each id follows from the one before, with some noise.
const ids = new Int32Array(B * T);
const targets = new Int32Array(B * T);
for (let b = 0; b < B; b += 1) {
  let id = integer(config.vocabularySize);
  for (let t = 0; t < T; t += 1) {
    ids[b * T + t] = id;
    id = integer(4) === 0 ? integer(config.vocabularySize) : (id * 7 + 3) % config.vocabularySize;
    targets[b * T + t] = id;
  }
}

const backend = await createWasmBackend({ threads });
const policy = createPolicy(config, backend, 1);
const weights = await policy.readWeights();
const D = config.width;
const shapes = new Map(
  [...weights].map(([name, values]) => {
    const square = values.length % D === 0 && values.length > D && !name.includes("o_proj");
    const inputs = name.includes("down_proj") ? config.intermediateWidth : D;
    if (name.endsWith("norm.weight")) return [name, [values.length]];
    return [
      name,
      square || name.includes("o_proj") ? [values.length / inputs, inputs] : [values.length],
    ];
  }),
);

// B separate sequences: a forest of B roots.
const trie = {
  tokenIds: ids,
  positions: Int32Array.from({ length: B * T }, (_, i) => i % T),
  parentRows: Int32Array.from({ length: B * T }, (_, i) => (i % T === 0 ? -1 : i - 1)),
  segmentStarts: Int32Array.from({ length: B }, (_, b) => b * T),
  segmentParents: new Int32Array(B).fill(-1),
};
const terms = { rows: Int32Array.from({ length: B * T }, (_, i) => i), targetIds: targets };
async function ourStep() {
  const pass = await policy.forward(trie, terms, { temperature: 1, keepForBackward: true });
  const loss = -pass.logprobs.reduce((sum, value) => sum + value, 0) / (B * T);
  await pass.backward(new Float32Array(B * T).fill(-1 / (B * T)));
  await policy.update({
    learningRate,
    beta1: 0.9,
    beta2: 0.95,
    epsilon: 1e-8,
    weightDecay: 0,
    maxGradientNorm: 1e9,
  });
  return loss;
}

if (jaxThreads > 1) installWebWorkers(jaxThreads);
const { createJaxTrainer, startJax } = await import("./lib/jax-train.mjs");
await startJax();
const trainer = createJaxTrainer(config, weights, shapes, B, T, learningRate);

const ours = [];
const theirs = [];
let worst = 0;
const timed = async (list, run) => {
  const start = performance.now();
  const loss = await run();
  list.push(performance.now() - start);
  return loss;
};
const warm = 2;
for (let i = 0; i < rounds + warm; i += 1) {
  const a = await timed(ours, ourStep);
  const b = await timed(theirs, () => trainer.step(ids, targets));
  worst = Math.max(worst, Math.abs(a - b));
  say(
    `step ${i + 1}${i < warm ? " (warm-up)" : ""}: loss ${a.toFixed(5)} ours, ${b.toFixed(5)} jax-js; ` +
      `${ours.at(-1).toFixed(0)} ms, ${theirs.at(-1).toFixed(0)} ms`,
  );
}
const median = (list) => list.slice(warm).toSorted((a, b) => a - b)[(list.length - warm) >> 1];
const rate = (list) => (B * T * 1000) / median(list);
const result = {
  parameters: policy.parameterCount,
  threads,
  jaxThreads,
  tokensPerSecond: Math.round(rate(ours)),
  jaxTokensPerSecond: Math.round(rate(theirs)),
  ratio: Number((rate(ours) / rate(theirs)).toFixed(2)),
  largestLossDifference: worst,
};
say(
  `\n${result.parameters} parameters, batch ${B} x ${T}: ours ${result.tokensPerSecond} tokens/s (${threads} threads), ` +
    `jax-js ${result.jaxTokensPerSecond} tokens/s (${jaxThreads} threads), ratio ${result.ratio}`,
);
if (flags.json) console.log(JSON.stringify(result));
if (worst > 1e-2) {
  console.error(`The losses differ by ${worst}; the two sides did not do the same work.`);
  process.exitCode = 1;
}
await policy[Symbol.asyncDispose]();
await backend[Symbol.asyncDispose]();
process.exit();
