/**
 * A policy whose logits are a hash of the whole prefix *as read back from the cache through the attention plan*.
 *
 * It makes the trie's mistakes visible: a slot overwritten while in use, a span out of order, a missing row or a wrong
 * position changes the logits or throws. It computes nothing else, so tests may run thousands of steps.
 */
import type {
  Backend,
  DecodablePolicy,
  IntTensor,
  KeyValueCache,
  ModelConfig,
  Tensor,
} from "@gimbal-rl/compute";
import { createRandom, hashToSeed } from "@gimbal-rl/core";

interface FloatBuffer extends Tensor {
  readonly data: Float32Array;
}

interface TracingCache extends KeyValueCache {
  /** Token and position stored at each slot; -1 when nothing was. */
  readonly tokens: Int32Array;
  readonly positions: Int32Array;
}

/** What the tracing policy was asked to do. */
export interface TracingPolicy extends DecodablePolicy {
  readonly counts: { steps: number; rows: number; maxRows: number };
  /** Changes the logits, as other weights would. */
  salt: number;
  /** Thrown by the next step, once. */
  nextFailure: Error | null;
}

/** Logits of the token after `prefix`. */
function traceLogits(prefix: readonly number[], salt: number, vocabulary: number): Float32Array {
  const random = createRandom(hashToSeed(salt, prefix));
  return Float32Array.from({ length: vocabulary }, () => random.next() * 6);
}

export function createTracingPolicy(vocabularySize = 13, maxPositions = 4096): TracingPolicy {
  const config: ModelConfig = {
    architecture: "llama",
    vocabularySize,
    width: 1,
    intermediateWidth: 1,
    layers: 1,
    heads: 1,
    keyValueHeads: 1,
    headWidth: 1,
    normEpsilon: 1e-6,
    ropeTheta: 1e4,
    maxPositions,
    tiedEmbeddings: true,
  };
  const counts = { steps: 0, rows: 0, maxRows: 0 };
  const policy: TracingPolicy = {
    config,
    backend: createTracingBackend(),
    counts,
    salt: 1,
    nextFailure: null,
    allocateCaches: (slots) => {
      const cache: TracingCache = {
        slots,
        tokens: new Int32Array(slots).fill(-1),
        positions: new Int32Array(slots).fill(-1),
      };
      return [cache];
    },
    decode: ({ tokenIds, positions, slots, plan, caches, logitRows }) => {
      const failure = policy.nextFailure;
      policy.nextFailure = null;
      if (failure !== null) throw failure;
      const cache = caches[0] as TracingCache;
      counts.steps += 1;
      counts.rows += tokenIds.length;
      counts.maxRows = Math.max(counts.maxRows, tokenIds.length);
      if (new Set(slots).size !== slots.length)
        throw new Error("a slot is written twice in a step");
      tokenIds.forEach((id, row) => {
        cache.tokens[slots[row]] = id;
        cache.positions[slots[row]] = positions[row];
      });
      const prefixes = readPrefixes(cache, plan, positions);
      const logits = new Float32Array(logitRows.length * vocabularySize);
      logitRows.forEach((row, i) => {
        logits.set(traceLogits(prefixes[row], policy.salt, vocabularySize), i * vocabularySize);
      });
      return floatBuffer(logits);
    },
  };
  return policy;
}

/** The ids that each row sees, in order, itself included. Throws when the plan is not a path of positions 0, 1, ... */
function readPrefixes(
  cache: TracingCache,
  plan: Parameters<DecodablePolicy["decode"]>[0]["plan"],
  positions: Int32Array,
): number[][] {
  const prefixes: number[][] = [];
  plan.rowStarts.forEach((rowStart, segment) => {
    const before: number[] = [];
    const read = (slot: number): void => {
      if (cache.positions[slot] !== before.length) {
        throw new Error(
          `slot ${slot} holds position ${cache.positions[slot]}, not ${before.length}`,
        );
      }
      before.push(cache.tokens[slot]);
    };
    for (let span = plan.spanOffsets[segment]; span < plan.spanOffsets[segment + 1]; span += 1) {
      for (let i = 0; i < plan.spanLengths[span]; i += 1) read(plan.spanSlots[span] + i);
    }
    for (let i = 0; i < plan.rowCounts[segment]; i += 1) {
      read(plan.selfSlots[segment] + i);
      if (positions[rowStart + i] !== before.length - 1)
        throw new Error("a row has a wrong position");
      prefixes[rowStart + i] = [...before];
    }
  });
  return prefixes;
}

function floatBuffer(data: Float32Array): FloatBuffer {
  return { length: data.length, data };
}

function createTracingBackend(): Backend {
  const data = (tensor: Tensor): Float32Array => (tensor as FloatBuffer).data;
  const backend: Partial<Backend> = {
    info: { id: "reference", variant: "tracing", threads: 1 },
    allocate: (length) => floatBuffer(new Float32Array(length)),
    allocateInts: (values) => ({ length: values.length, values }) as IntTensor,
    free: () => {},
    read: (source, offset = 0, length = source.length - offset) =>
      Promise.resolve(data(source).slice(offset, offset + length)),
    gatherRows: (out, source, indices, width) => {
      const { values } = indices as IntTensor & { values: Int32Array };
      values.forEach((row, i) => {
        data(out).set(data(source).subarray(row * width, (row + 1) * width), i * width);
      });
    },
    sample: (ids, logprobs, logits, uniforms, vocabulary, temperature) => {
      for (let row = 0; row < ids.length; row += 1) {
        const values = data(logits).subarray(row * vocabulary, (row + 1) * vocabulary);
        [ids[row], logprobs[row]] = sampleRow(values, uniforms[row], temperature);
      }
      return Promise.resolve();
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
  return backend as Backend;
}

function sampleRow(logits: Float32Array, uniform: number, temperature: number): [number, number] {
  const divisor = temperature === 0 ? 1 : temperature;
  const masses = Array.from(logits, (logit) => Math.exp(logit / divisor));
  const total = masses.reduce((sum, mass) => sum + mass, 0);
  let id = masses.length - 1;
  if (temperature === 0) id = masses.indexOf(Math.max(...masses));
  else {
    let cumulative = 0;
    for (let v = 0; v < masses.length; v += 1) {
      cumulative += masses[v] / total;
      if (cumulative > uniform) {
        id = v;
        break;
      }
    }
  }
  return [id, Math.fround(Math.log(masses[id] / total))];
}
