/**
 * Models and sequences that the cases for whole models share.
 */
import type { LossTerms } from "@gimbal-rl/core";
import type { Backend } from "../backend.js";
import { createPolicy, type ModelPolicy } from "../model/policy.js";
import type { ModelConfig } from "../policy.js";
import { randomFloats, randomInts } from "./checks.js";
import { type BuiltTrie, buildTrie } from "./trie-tools.js";

/** Two layers, grouped heads, widths that are no multiples of a SIMD width. */
export const toy: ModelConfig = {
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

/** Both architectures, tied and not. */
export const variants: readonly (readonly [name: string, config: ModelConfig])[] = [
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
export const sequences: readonly number[][] = [
  [3, 1, 4, 1, 5, 9, 2, 6, 5, 3],
  [3, 1, 4, 1, 5, 9, 7, 7],
  [3, 1, 4, 1, 8, 2, 8],
  [16, 1, 4],
  [3, 1, 4, 1, 8, 2, 8],
];
/** Index of the first sampled token of each sequence. */
export const sampledFrom: readonly number[] = [4, 6, 4, 1, 4];

/** Rows whose next token is wanted. */
export type Terms = Pick<LossTerms, "rows" | "targetIds">;

/** Terms of the sampled tokens. */
export function termsOf({ rowsOf }: BuiltTrie, from: readonly number[] = sampledFrom): Terms {
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

/** A policy whose norm weights are off 1. */
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

/** Runs a body with such a policy, and frees it. */
export async function withPolicy(
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

/** Log-probabilities of a pass that is not differentiated. */
export async function logprobsOf(
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
