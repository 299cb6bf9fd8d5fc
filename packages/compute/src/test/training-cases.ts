/**
 * Cases for training a whole model over a Backend: updates, clipping, freezing, several passes at once.
 */
import type { Backend } from "../backend.js";
import { createPolicy } from "../model/policy.js";
import {
  type ContractCase,
  expectClose,
  expectSameBits,
  expectTrue,
  randomFloats,
  randomInts,
} from "./checks.js";
import { sequences, termsOf, toy, withPolicy } from "./policy-tools.js";
import { tolerancesF32 } from "./tolerances.js";
import { buildTrie } from "./trie-tools.js";

/** Clipping, freezing, chunks of logits, open passes, and that training learns. */
export const trainingCases: readonly ContractCase[] = [
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
