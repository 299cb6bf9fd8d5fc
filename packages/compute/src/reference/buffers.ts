/**
 * Buffers of the reference backend: plain typed arrays.
 *
 * Law: a buffer of another backend, or a freed one, is refused at once.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { AttentionShape, IntTensor, KeyValueCache, Tensor } from "../backend.js";

/** An f32 buffer. */
export class ReferenceTensor implements Tensor {
  readonly length: number;
  data: Float32Array | null;
  /** Whether `refreshWeight` was called since the last change; other backends keep packed copies. */
  refreshed = false;

  constructor(length: number) {
    this.length = length;
    this.data = new Float32Array(length);
  }
}

/** An i32 buffer. */
export class ReferenceIntTensor implements IntTensor {
  readonly length: number;
  data: Int32Array | null;

  constructor(values: Int32Array) {
    this.length = values.length;
    this.data = values.slice();
  }
}

/** Keys and values [slots, G * E], row-major. */
export class ReferenceCache implements KeyValueCache {
  readonly slots: number;
  keys: Float32Array | null;
  values: Float32Array | null;

  constructor(slots: number, shape: AttentionShape) {
    const length = slots * shape.keyValueHeads * shape.headWidth;
    this.slots = slots;
    this.keys = new Float32Array(length);
    this.values = new Float32Array(length);
  }
}

function refuse(): never {
  throw new GimbalError(
    "shape-mismatch",
    "Found a freed buffer or one of another backend; expected a live buffer of the reference backend.",
    { boundary: "compute" },
  );
}

/** The floats of a live reference tensor. @throws `shape-mismatch`. */
export function floatsOf(tensor: Tensor): Float32Array {
  return tensor instanceof ReferenceTensor && tensor.data !== null ? tensor.data : refuse();
}

/** The floats of a tensor that the caller changes as a whole: a weight must be refreshed afterwards. */
export function changedFloatsOf(tensor: Tensor): Float32Array {
  if (tensor instanceof ReferenceTensor) tensor.refreshed = false;
  return floatsOf(tensor);
}

/** The floats of a refreshed linear weight. @throws `shape-mismatch` when it changed since. */
export function weightOf(tensor: Tensor): Float32Array {
  if (tensor instanceof ReferenceTensor && !tensor.refreshed) {
    throw new GimbalError(
      "shape-mismatch",
      "Found a linear weight that changed; expected refreshWeight before its next use.",
      { boundary: "compute" },
    );
  }
  return floatsOf(tensor);
}

/** The integers of a live reference tensor. @throws `shape-mismatch`. */
export function intsOf(tensor: IntTensor): Int32Array {
  return tensor instanceof ReferenceIntTensor && tensor.data !== null ? tensor.data : refuse();
}

/** Keys and values of a live reference cache. @throws `shape-mismatch`. */
export function cacheOf(cache: KeyValueCache): { keys: Float32Array; values: Float32Array } {
  return cache instanceof ReferenceCache && cache.keys !== null && cache.values !== null
    ? { keys: cache.keys, values: cache.values }
    : refuse();
}

/**
 * Asserts buffer lengths: `[name, actual, expected]` triples.
 * @throws {GimbalError} `shape-mismatch` naming the operation and the buffer.
 */
export function expectLengths(
  operation: string,
  ...checks: readonly (readonly [name: string, actual: number, expected: number])[]
): void {
  for (const [name, actual, expected] of checks) {
    if (actual !== expected) {
      throw new GimbalError(
        "shape-mismatch",
        `${operation}: ${name} holds ${actual} values, expected ${expected}.`,
        { boundary: "compute", details: { operation, name, actual, expected } },
      );
    }
  }
}
