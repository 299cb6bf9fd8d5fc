/**
 * Tokens per second of the local engine: 16 calls that share a 1.5k-token prefix, 128 tokens each.
 *
 *   npx tsx --conditions=@gimbal-rl/source bench/sampler.mjs [--backend wasm] [--threads 1] [--calls 16]
 *     [--prefix 1500] [--tokens 128] [--in-process]
 *
 * The model has the demo's size and random weights. Prints one JSON object.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createPolicy, createReferenceBackend } from "@gimbal-rl/compute";
import { createRandom } from "@gimbal-rl/core";
import { createLocalEngine } from "@gimbal-rl/engine";

const { values } = parseArgs({
  options: {
    backend: { type: "string", default: "wasm" },
    threads: { type: "string", default: "1" },
    calls: { type: "string", default: "16" },
    prefix: { type: "string", default: "1500" },
    tokens: { type: "string", default: "128" },
    "in-process": { type: "boolean", default: false },
  },
});
const calls = Number(values.calls);
const prefix = Number(values.prefix);
const tokens = Number(values.tokens);
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
  maxPositions: 16_384,
  tiedEmbeddings: true,
};

const dir = await mkdtemp(join(tmpdir(), "gimbal-bench-"));
const policy = createPolicy(config, createReferenceBackend(), 1);
await policy.save(dir, { optimizer: false });
const engine = await createLocalEngine({
  modelDir: dir,
  backend: values.backend,
  threads: Number(values.threads),
  inProcess: values["in-process"],
});

const random = createRandom(5);
const ids = (count) => Array.from({ length: count }, () => random.integer(config.vocabularySize));
async function sample(request) {
  const startMs = performance.now();
  let firstMs = Number.NaN;
  let count = 0;
  for await (const event of engine.generate(request, new AbortController().signal)) {
    if (event.type !== "tokens-delta") continue;
    if (count === 0) firstMs = performance.now() - startMs;
    count += event.ids.length;
  }
  return { firstMs, count };
}
const requestOf = (promptIds, seed, maxTokens) => ({
  promptIds,
  maxTokens,
  sampling: { temperature: 1, topP: 1, topK: 0 },
  stopIds: [],
  seed,
});

await sample(requestOf(ids(64), 0, 32)); // warms the code up
const before = await engine.stats();
const shared = ids(prefix);
const startMs = performance.now();
const results = await Promise.all(
  Array.from({ length: calls }, (_, i) => sample(requestOf([...shared, ...ids(8)], i, tokens))),
);
const wallMs = performance.now() - startMs;
const after = await engine.stats();
const sampled = results.reduce((sum, { count }) => sum + count, 0);
const firstTokenMs = Math.max(...results.map(({ firstMs }) => firstMs));
const rows = after.computedRows - before.computedRows;
const busyMs = after.busyMs - before.busyMs;
console.log(
  JSON.stringify({
    backend: engine.host.backendId,
    variant: engine.host.backendVariant,
    threads: engine.host.threads,
    calls,
    prefix,
    sampledTokens: sampled,
    tokensPerSecond: Math.round(sampled / (wallMs / 1000)),
    decodeTokensPerSecond: Math.round((sampled - calls) / ((wallMs - firstTokenMs) / 1000)),
    firstTokenMs: Math.round(firstTokenMs),
    wallMs: Math.round(wallMs),
    busyMs: Math.round(busyMs),
    steps: after.steps - before.steps,
    computedRows: rows,
    rowsWithoutSharing: calls * (prefix + 8 + tokens - 1),
  }),
);
await engine[Symbol.asyncDispose]();
await rm(dir, { recursive: true, force: true });
