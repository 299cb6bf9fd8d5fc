/**
 * The contract suite of whole models over a Backend: the f64 formula and its finite differences, trie batches against
 * separate sequences, and the bit-for-bit law between sampling and training.
 */
import type { ModelPolicy } from "../model/policy.js";
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
import {
  logprobsOf,
  sampledFrom,
  sequences,
  termsOf,
  variants,
  withPolicy,
} from "./policy-tools.js";
import { planOf } from "./suite-tools.js";
import { tolerancesF32 } from "./tolerances.js";
import { trainingCases } from "./training-cases.js";
import { type BuiltTrie, buildTrie } from "./trie-tools.js";

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
