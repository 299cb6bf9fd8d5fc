/**
 * Buffers of the WASM backend: addresses in its shared memory.
 *
 * Law: a buffer of another backend, or a freed one, is refused at once. Zeros are written when they are first
 * needed, so a buffer that an operation fills completely is never cleared.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { AttentionShape, IntTensor, KeyValueCache, Tensor } from "../backend.js";

/** Packed copies of a weight [N,K]: panels of 16 rows for the product, of 16 columns for its gradient. */
export interface PackedWeight {
  readonly outputs: number;
  readonly inputs: number;
  rows: number;
  columns: number;
  rowsFresh: boolean;
  columnsFresh: boolean;
  /** True when the weight changed after it was refreshed. */
  stale: boolean;
}

/** An f32 buffer. */
export class WasmTensor implements Tensor {
  readonly length: number;
  readonly owner: object;
  pointer: number;
  /** True while the zeros are owed. */
  unwritten: boolean;
  packed: PackedWeight | undefined;

  constructor(length: number, owner: object, pointer: number, unwritten: boolean) {
    this.length = length;
    this.owner = owner;
    this.pointer = pointer;
    this.unwritten = unwritten;
    this.packed = undefined;
  }
}

/** An i32 buffer with its range, so that indices are checked without reading them again. */
export class WasmIntTensor implements IntTensor {
  readonly length: number;
  readonly owner: object;
  readonly minimum: number;
  readonly maximum: number;
  pointer: number;

  constructor(values: Int32Array, owner: object, pointer: number) {
    this.length = values.length;
    this.owner = owner;
    this.pointer = pointer;
    let minimum = 0x7fffffff;
    let maximum = -0x80000000;
    for (const value of values) {
      if (value < minimum) minimum = value;
      if (value > maximum) maximum = value;
    }
    this.minimum = values.length === 0 ? 0 : minimum;
    this.maximum = values.length === 0 ? -1 : maximum;
  }
}

/** Keys [G][slots / 16][E][16] and values [G][slots][Ev], Ev = E rounded up to 8. */
export class WasmCache implements KeyValueCache {
  readonly slots: number;
  readonly owner: object;
  readonly shape: AttentionShape;
  /** Blocks of 16 slots per head. */
  readonly blocks: number;
  readonly valueWidth: number;
  keys: number;
  values: number;

  constructor(slots: number, shape: AttentionShape, owner: object) {
    this.slots = slots;
    this.shape = shape;
    this.owner = owner;
    this.blocks = Math.max(1, Math.ceil(slots / 16));
    this.valueWidth = Math.ceil(shape.headWidth / 8) * 8;
    this.keys = 0;
    this.values = 0;
  }

  get keyBytes(): number {
    return this.shape.keyValueHeads * this.blocks * this.shape.headWidth * 64;
  }

  get valueBytes(): number {
    return this.shape.keyValueHeads * this.blocks * this.valueWidth * 64;
  }
}

/** Refuses a freed buffer or one of another backend. @throws `shape-mismatch`. */
export function refuseBuffer(): never {
  throw new GimbalError(
    "shape-mismatch",
    "Found a freed buffer or one of another backend; expected a live buffer of this WASM backend.",
    { boundary: "compute" },
  );
}

/**
 * Asserts that all indices lie in 0 .. limit - 1.
 * @throws {GimbalError} `shape-mismatch` naming the operation.
 */
export function expectIndices(operation: string, indices: WasmIntTensor, limit: number): void {
  if (indices.minimum < 0 || indices.maximum >= limit) {
    throw new GimbalError(
      "shape-mismatch",
      `${operation}: indices run from ${indices.minimum} to ${indices.maximum}, expected 0 to ${limit - 1}.`,
      { boundary: "compute" },
    );
  }
}
