/**
 * The contract suite of whole models over a Backend: the f64 formula and its finite differences, trie batches against
 * separate sequences, and the bit-for-bit law between sampling and training.
 */
import type { LossTerms } from "@gimbal-rl/core";
import type { Backend } from "../backend.js";
import { createPolicy, type ModelPolicy } from "../model/policy.js";
import type { ModelConfig } from "../policy.js";
import {
  type ContractCase,
  expectClose,
  expectSameBits,
  expectTrue,
  randomFloats,
  randomInts,
} from "./checks.js";
import { naiveLogprob } from "./naive.js";
import { naiveModelLogits } from "./naive-model.js";
import { planOf } from "./suite-tools.js";
import { tolerancesF32 } from "./tolerances.js";
import { type BuiltTrie, buildTrie } from "./trie-tools.js";

/** Two layers, grouped heads, widths that are no multiples of a SIMD width. */
const toy: ModelConfig = {
  architecture: "qwen3",
  vocabularySize: 23,
  width: 12,
  intermediateWidth: 18,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headWidth: 6,
  normEpsilon: 1e-5,
  ropeTheta: 10_000,
  maxPositions: 2048,
  tiedEmbeddings: true,
};

const variants: readonly (readonly [name: string, config: ModelConfig])[] = [
  ["Qwen3, tied", toy],
  ["Qwen3, untied", { ...toy, tiedEmbeddings: false }],
  ["Llama, tied", { ...toy, architecture: "llama" }],
  [
    "Llama, untied, long rope",
    {
      ...toy,
      architecture: "llama",
      tiedEmbeddings: false,
      keyValueHeads: 1,
      ropeScaling: {
        factor: 8,
        lowFrequencyFactor: 1,
        highFrequencyFactor: 4,
        originalMaxPositions: 64,
      },
    },
  ],
];

/** Sequences that share prefixes; sampled tokens begin at `sampledFrom`. The last repeats one, as a second attempt. */
const sequences = [
  [3, 1, 4, 1, 5, 9, 2, 6, 5, 3],
  [3, 1, 4, 1, 5, 9, 7, 7],
  [3, 1, 4, 1, 8, 2, 8],
  [16, 1, 4],
  [3, 1, 4, 1, 8, 2, 8],
];
const sampledFrom = [4, 6, 4, 1, 4];

type Terms = Pick<LossTerms, "rows" | "targetIds">;

function termsOf({ rowsOf }: BuiltTrie, from: readonly number[] = sampledFrom): Terms {
  const rows: number[] = [];
  const targetIds: number[] = [];
  rowsOf.forEach((path, s) => {
    for (let t = from[s]; t < path.length; t += 1) {
      rows.push(path[t - 1]);
      targetIds.push(sequences[s][t]);
    }
  });
  return { rows: Int32Array.from(rows), targetIds: Int32Array.from(targetIds) };
}

/** A policy whose weights, norms included, are all away from their initial values. */
async function randomPolicy(config: ModelConfig, backend: Backend): Promise<ModelPolicy> {
  const policy = createPolicy(config, backend, 7);
  // Two steps on a fixed gradient move the norm weights off 1, which a missing factor would otherwise hide behind.
  const { trie, rowsOf } = buildTrie([[...Array(20).keys()]]);
  const rows = Int32Array.from(rowsOf[0]);
  const targetIds = randomInts(20, config.vocabularySize, "warm-up");
  for (let step = 0; step < 3; step += 1) {
    const options = { temperature: 1, keepForBackward: true };
    const pass = await policy.forward(trie, { rows, targetIds }, options);
    await pass.backward(randomFloats(20, `warm-up ${step}`));
    await policy.update({ learningRate: 0.05 });
  }
  return policy;
}

async function withPolicy(
  config: ModelConfig,
  backend: Backend,
  body: (policy: ModelPolicy) => Promise<void>,
): Promise<void> {
  const policy = await randomPolicy(config, backend);
  try {
    await body(policy);
  } finally {
    await policy[Symbol.asyncDispose]();
  }
}

async function logprobsOf(
  policy: ModelPolicy,
  built: BuiltTrie,
  terms: Terms,
  temperature: number,
): Promise<Float32Array> {
  const options = { temperature, keepForBackward: false };
  const pass = await policy.forward(built.trie, terms, options);
  pass.free();
  return pass.logprobs;
}

const formulaCases: readonly ContractCase[] = variants.map(
  ([name, config]): ContractCase => ({
    name: `${name}: log-probabilities of a trie equal the f64 formula and gradients its finite differences`,
    run: (backend) =>
      withPolicy(config, backend, async (policy) => {
        const { modelValue, modelGradient } = tolerancesF32[backend.info.id];
        const temperature = 0.8;
        const built = buildTrie(sequences);
        const terms = termsOf(built);
        const gradLogprobs = randomFloats(terms.rows.length, "model grad");
        const options = { temperature, keepForBackward: true };
        const pass = await policy.forward(built.trie, terms, options);
        await pass.backward(gradLogprobs);
        const weights = new Map(
          [...(await policy.readWeights())].map(([key, w]) => [key, Float64Array.from(w)]),
        );
        const naive = (): number[] =>
          sequences.flatMap((sequence, s) => {
            const logits = naiveModelLogits(config, weights, sequence);
            const V = config.vocabularySize;
            return sequence.slice(sampledFrom[s]).map((target, i) => {
              const row = sampledFrom[s] + i - 1;
              return naiveLogprob(logits.subarray(row * V, (row + 1) * V), target, temperature);
            });
          });
        expectClose("logprobs", pass.logprobs, naive(), modelValue);
        const loss = () => naive().reduce((sum, lp, t) => sum + lp * gradLogprobs[t], 0);
        // Relative to the largest gradient of all parameters.
        const actual: number[] = [];
        const expected: number[] = [];
        for (const [key, gradient] of await policy.readGradients()) {
          const weight = weights.get(key) ?? new Float64Array(0);
          const step = 1e-5;
          for (const i of new Set(randomInts(6, gradient.length, key))) {
            const start = weight[i];
            weight[i] = start + step;
            const up = loss();
            weight[i] = start - step;
            const down = loss();
            weight[i] = start;
            actual.push(gradient[i]);
            expected.push((up - down) / (2 * step));
          }
        }
        expectClose("gradients", actual, expected, modelGradient);
      }),
  }),
);

const trieCases: readonly ContractCase[] = variants.flatMap(([name, config]) => [
  {
    name: `${name}: a trie batch computes each unique token once and its gradients equal those of the separate sequences`,
    run: (backend) =>
      withPolicy(config, backend, async (policy) => {
        const { trieGradient } = tolerancesF32[backend.info.id];
        const built = buildTrie(sequences);
        const prefixes = new Set(
          sequences.flatMap((ids) => ids.map((_, i) => ids.slice(0, i + 1).join())),
        );
        const terms = termsOf(built);
        const gradLogprobs = randomFloats(terms.rows.length, "trie grad");
        const options = { temperature: 1, keepForBackward: true };
        const pass = await policy.forward(built.trie, terms, options);
        expectTrue(
          `found ${pass.rows} rows, expected ${prefixes.size}`,
          pass.rows === prefixes.size,
        );
        await pass.backward(gradLogprobs);
        const together = await policy.readGradients();
        await policy.update({ learningRate: 0 });
        let done = 0;
        for (let s = 0; s < sequences.length; s += 1) {
          const count = sequences[s].length - sampledFrom[s];
          const { trie } = buildTrie([sequences[s]]);
          const rows = Int32Array.from({ length: count }, (_, i) => sampledFrom[s] + i - 1);
          const targetIds = Int32Array.from(sequences[s].slice(sampledFrom[s]));
          const single = await policy.forward(trie, { rows, targetIds }, options);
          expectSameBits(`sequence ${s}`, single.logprobs, pass.logprobs.slice(done, done + count));
          await single.backward(gradLogprobs.slice(done, done + count));
          done += count;
        }
        for (const [key, gradient] of await policy.readGradients())
          expectClose(key, together.get(key) ?? [], gradient, trieGradient);
      }),
  },
  {
    name: `${name}: log-probabilities are the same bits for any cut of the trie into segments and any choice of terms`,
    run: (backend) =>
      withPolicy(config, backend, async (policy) => {
        const built = buildTrie(sequences);
        const whole = await logprobsOf(policy, built, termsOf(built), 0.9);
        for (const longest of [1, 2, 3]) {
          const cut = buildTrie(sequences, longest);
          expectSameBits(
            `pieces of ${longest}`,
            await logprobsOf(policy, cut, termsOf(cut), 0.9),
            whole,
          );
        }
        const terms = termsOf(built);
        for (let t = 0; t < terms.rows.length; t += 5) {
          const one = {
            rows: terms.rows.slice(t, t + 1),
            targetIds: terms.targetIds.slice(t, t + 1),
          };
          const alone = await logprobsOf(policy, built, one, 0.9);
          expectSameBits(`term ${t}`, alone, whole.slice(t, t + 1));
        }
      }),
  },
]);

/** Decodes sequences together, in chunks, and returns the log-probability of each sampled token. */
async function decodeLogprobs(
  policy: ModelPolicy,
  built: BuiltTrie,
  chunk: number,
  temperature: number,
): Promise<Float32Array> {
  const { backend, config } = policy;
  const rows = built.trie.tokenIds.length;
  // Every sequence has its own stretch of slots, in reverse order, so that slots differ from rows.
  const lengths = sequences.map((ids) => ids.length);
  const bases = lengths.map((_, s) => lengths.slice(s + 1).reduce((sum, n) => sum + n, 3));
  const caches = policy.allocateCaches(bases[0] + lengths[0] + rows);
  const found: number[][] = sequences.map(() => []);
  for (let start = 0; start < Math.max(...lengths); start += chunk) {
    const active = sequences.flatMap((ids, s) =>
      start < ids.length ? [{ s, ids: ids.slice(start, start + chunk) }] : [],
    );
    let next = 0;
    const segments = active.map(({ s, ids }) => {
      const rowStart = next;
      next += ids.length;
      return {
        rowStart,
        rowCount: ids.length,
        selfSlot: bases[s] + start,
        spans: start === 0 ? [] : [[bases[s], start] as const],
      };
    });
    const wanted = active.flatMap(({ s, ids }, a) =>
      ids.flatMap((_, i) => {
        const target = start + i + 1;
        return target >= sampledFrom[s] && target < sequences[s].length
          ? [{ s, row: segments[a].rowStart + i, target: sequences[s][target] }]
          : [];
      }),
    );
    const logits = policy.decode({
      tokenIds: Int32Array.from(active.flatMap(({ ids }) => ids)),
      positions: Int32Array.from(active.flatMap(({ ids }) => ids.map((_, i) => start + i))),
      slots: Int32Array.from(
        active.flatMap(({ s, ids }) => ids.map((_, i) => bases[s] + start + i)),
      ),
      plan: planOf(segments),
      caches,
      logitRows: Int32Array.from(wanted, ({ row }) => row),
    });
    if (wanted.length > 0) {
      const sums = backend.allocate(wanted.length);
      const out = backend.allocate(wanted.length);
      const order = backend.allocateInts(Int32Array.from(wanted.keys()));
      const targets = backend.allocateInts(Int32Array.from(wanted, ({ target }) => target));
      const { vocabularySize } = config;
      backend.logSumExp(sums, logits, vocabularySize, temperature);
      backend.gatherLogprobs(out, logits, sums, order, targets, vocabularySize, temperature);
      const values = await backend.read(out);
      wanted.forEach(({ s }, i) => {
        found[s].push(values[i]);
      });
      for (const buffer of [sums, out, order, targets]) backend.free(buffer);
    }
    backend.free(logits);
  }
  for (const cache of caches) backend.free(cache);
  return Float32Array.from(found.flat());
}

const decodeCases: readonly ContractCase[] = variants.map(
  ([name, config]): ContractCase => ({
    name: `${name}: decoding in chunks of 1, 3 or 64 gives the log-probabilities of the trie pass, bit for bit`,
    run: (backend) =>
      withPolicy(config, backend, async (policy) => {
        const built = buildTrie(sequences);
        const trained = await logprobsOf(policy, built, termsOf(built), 0.9);
        for (const chunk of [1, 3, 64]) {
          const decoded = await decodeLogprobs(policy, built, chunk, 0.9);
          expectSameBits(`chunks of ${chunk}`, decoded, trained);
        }
      }),
  }),
);

const trainingCases: readonly ContractCase[] = [
  {
    name: "more loss rows than one chunk of logits give the same log-probabilities and gradients as two passes",
    run: (backend) =>
      withPolicy({ ...toy, layers: 1 }, backend, async (policy) => {
        const ids = [...randomInts(700, toy.vocabularySize, "long")];
        const built = buildTrie([ids]);
        const targetIds = randomInts(700, toy.vocabularySize, "long targets");
        const rows = Int32Array.from(ids.keys());
        const gradLogprobs = randomFloats(700, "long grad");
        const options = { temperature: 1, keepForBackward: true };
        const pass = await policy.forward(built.trie, { rows, targetIds }, options);
        await pass.backward(gradLogprobs);
        const together = await policy.readGradients();
        await policy.update({ learningRate: 0 });
        for (const [start, end] of [
          [0, 250],
          [250, 700],
        ] as const) {
          const part = { rows: rows.slice(start, end), targetIds: targetIds.slice(start, end) };
          const half = await policy.forward(built.trie, part, options);
          expectSameBits("logprobs", half.logprobs, pass.logprobs.slice(start, end));
          await half.backward(gradLogprobs.slice(start, end));
        }
        const { trieGradient } = tolerancesF32[backend.info.id];
        for (const [key, gradient] of await policy.readGradients())
          expectClose(key, together.get(key) ?? [], gradient, trieGradient);
      }),
  },
  {
    name: "a pass kept for backward survives a later pass at positions far beyond it",
    run: (backend) =>
      withPolicy({ ...toy, layers: 1, maxPositions: 4096 }, backend, async (policy) => {
        const built = buildTrie(sequences);
        const terms = termsOf(built);
        const options = { temperature: 1, keepForBackward: true };
        const gradient = new Float32Array(terms.rows.length).fill(-1);
        const gradientsAfter = async (between: () => Promise<void>) => {
          const pass = await policy.forward(built.trie, terms, options);
          await between();
          await pass.backward(gradient);
          const gradients = await policy.readGradients();
          await policy.update({ learningRate: 0 });
          return gradients;
        };
        const alone = await gradientsAfter(async () => {});
        const beside = await gradientsAfter(async () => {
          // One more position than the first table of cosines and sines covers.
          const long = buildTrie([[...randomInts(1025, toy.vocabularySize, "far")]]);
          const last = { rows: Int32Array.of(1024), targetIds: Int32Array.of(0) };
          (await policy.forward(long.trie, last, options)).free();
        });
        for (const [key, values] of beside)
          expectSameBits(key, values, alone.get(key) ?? new Float32Array());
      }),
  },
  {
    name: "an update without gradients decays matrices and leaves norms; gradients are zero after it",
    run: (backend) =>
      withPolicy(toy, backend, async (policy) => {
        const fresh = createPolicy(toy, backend, 5);
        const before = await fresh.readWeights();
        const { gradientNorm } = await fresh.update({ learningRate: 0.5, weightDecay: 0.2 });
        expectTrue(`found norm ${gradientNorm}, expected 0`, gradientNorm === 0);
        for (const [key, weight] of await fresh.readWeights()) {
          const factor = key.includes("norm") ? 1 : 0.9;
          expectClose(
            key,
            weight,
            (before.get(key) ?? weight).map((w) => w * factor),
            1e-6,
          );
        }
        await fresh[Symbol.asyncDispose]();
        for (const gradient of (await policy.readGradients()).values())
          expectTrue(
            "a gradient is not zero",
            gradient.every((g) => g === 0),
          );
      }),
  },
  {
    name: "clipping reports the norm before it and makes updates independent of the gradient's size",
    run: async (backend) => {
      const { modelGradient } = tolerancesF32[backend.info.id];
      const built = buildTrie(sequences);
      const terms = termsOf(built);
      const results: Map<string, Float32Array>[] = [];
      // AdamW forgets a constant scale, so only the second of two gradients differs in size.
      for (const sizes of [
        [8, 8],
        [8, 64],
      ]) {
        const policy = createPolicy(toy, backend, 11);
        for (const size of sizes) {
          const options = { temperature: 1, keepForBackward: true };
          const pass = await policy.forward(built.trie, terms, options);
          await pass.backward(new Float32Array(terms.rows.length).fill(-size));
          let squares = 0;
          for (const gradient of (await policy.readGradients()).values())
            for (const g of gradient) squares += g * g;
          const { gradientNorm } = await policy.update({ learningRate: 0.01, maxGradientNorm: 1 });
          expectClose("norm", [gradientNorm], [Math.sqrt(squares)], modelGradient);
          expectTrue(`found norm ${gradientNorm}, expected more than 2`, gradientNorm > 2);
        }
        results.push(await policy.readWeights());
        await policy[Symbol.asyncDispose]();
      }
      // AdamW divides by the gradient's size, so weights whose gradient is near zero are sensitive to rounding.
      for (const [key, weight] of results[0])
        expectClose(key, results[1].get(key) ?? [], weight, 1e-4);
    },
  },
  {
    name: "a frozen kind of parameter counts neither in the norm nor in the clipping, and keeps weights and state",
    run: async (backend) => {
      const { modelGradient } = tolerancesF32[backend.info.id];
      const built = buildTrie(sequences);
      const terms = termsOf(built);
      const kinds = {
        embedding: (key: string) => key.includes("embed_tokens") || key.includes("lm_head"),
        norm: (key: string) => key.includes("norm"),
        attention: (key: string) => key.includes("_proj") && key.includes("self_attn"),
        mlp: (key: string) => key.includes("mlp"),
        finalNorm: (key: string) => key === "model.norm.weight",
      };
      for (const [kind, isFrozen] of Object.entries(kinds)) {
        const policy = createPolicy(toy, backend, 11);
        const before = await policy.readWeights();
        const update = async (scale: number) => {
          const pass = await policy.forward(built.trie, terms, {
            temperature: 1,
            keepForBackward: true,
          });
          await pass.backward(new Float32Array(terms.rows.length).fill(-8));
          let squares = 0;
          for (const [key, gradient] of await policy.readGradients())
            if (scale !== 0 || !isFrozen(key)) for (const g of gradient) squares += g * g;
          const options = { learningRate: 0.01, maxGradientNorm: 1, weightDecay: 0.1 };
          const { gradientNorm } = await policy.update({
            ...options,
            learningRateScales: { [kind]: scale },
          });
          expectClose(kind, [gradientNorm], [Math.sqrt(squares)], modelGradient);
          for (const [key, gradient] of await policy.readGradients())
            expectTrue(
              `the gradient of ${key} is not zero`,
              gradient.every((g) => g === 0),
            );
        };
        await update(0);
        for (const [key, weight] of await policy.readWeights()) {
          const isSame = weight.every((w, i) => w === before.get(key)?.[i]);
          // finalNorm falls back to norm, so freezing norm freezes it too.
          expectTrue(`${key} with ${kind} frozen: changed ${!isSame}`, isSame === isFrozen(key));
        }
        await update(1);
        await policy[Symbol.asyncDispose]();
      }
    },
  },
  {
    name: "training learns: a few updates raise the log-probability of the sampled tokens, twice with the same bits",
    run: async (backend) => {
      const first = await trainingDigest(backend);
      const second = await trainingDigest(backend);
      expectTrue(`found ${second}, expected ${first}`, first === second);
    },
  },
];

/**
 * Trains a small model for a few steps and returns a digest of the bits of its weights and log-probabilities.
 * The digest must not depend on the number of threads.
 * @throws when the log-probability does not rise.
 */
export async function trainingDigest(backend: Backend): Promise<string> {
  const config = { ...toy, vocabularySize: 67, width: 32, intermediateWidth: 80, headWidth: 16 };
  const policy = createPolicy(config, backend, 3);
  const long = [...randomInts(150, config.vocabularySize, "digest")];
  const tails = [1, 2, 3].map((s) => [...randomInts(40, config.vocabularySize, `tail ${s}`)]);
  const paths = tails.map((tail, s) => [...long.slice(0, 150 - 20 * s), ...tail]);
  const { trie, rowsOf } = buildTrie(paths);
  const rows = Int32Array.from(rowsOf.flatMap((path) => path.slice(-41, -1)));
  const targetIds = Int32Array.from(tails.flat());
  const sums: number[] = [];
  let digest = 0x811c9dc5;
  const mix = (values: Float32Array): void => {
    for (const word of new Uint32Array(values.buffer, values.byteOffset, values.length))
      digest = Math.imul(digest ^ word, 0x01000193) ^ (word >>> 15);
  };
  for (let step = 0; step < 4; step += 1) {
    const options = { temperature: 0.9, keepForBackward: true };
    const pass = await policy.forward(trie, { rows, targetIds }, options);
    mix(pass.logprobs);
    sums.push(pass.logprobs.reduce((sum, lp) => sum + lp, 0));
    await pass.backward(new Float32Array(rows.length).fill(-1 / rows.length));
    await policy.update({ learningRate: 0.01, maxGradientNorm: 1, weightDecay: 0.01 });
  }
  expectTrue(`log-probabilities went ${sums.join(", ")}; expected a rise`, sums[3] > sums[0]);
  for (const weight of (await policy.readWeights()).values()) mix(weight);
  await policy[Symbol.asyncDispose]();
  return (digest >>> 0).toString(16).padStart(8, "0");
}

/**
 * Cases for whole models over a Backend.
 * @example
 * for (const { name, run } of policySuite) it(name, () => run(backend));
 */
export const policySuite: readonly ContractCase[] = [
  ...formulaCases,
  ...trieCases,
  ...decodeCases,
  ...trainingCases,
];
