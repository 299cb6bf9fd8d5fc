/**
 * Memory of the WASM backend: buffers in its heap, their addresses, packed weights, and the way to the kernels.
 *
 * Laws: an address is asked for the use that is made of it (`in`, `into`, `out`), so owed zeros are written and
 * changed weights are known; buffers of another backend and freed ones are refused.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { AttentionShape, IntTensor, KeyValueCache, Tensor } from "../backend.js";
import { expectLengths } from "../reference/buffers.js";
import { refuseBuffer, WasmCache, WasmIntTensor, WasmTensor } from "./buffers.js";
import { SharedHeap } from "./heap.js";
import { HEAP_START, type Kernel, type KernelPool } from "./pool.js";

/** Floats of one unit of an elementwise kernel; fixed in assembly/elementwise.ts. */
export const FLOAT_BLOCK = 1024;
/** Work space of one thread: the packed operands of linearBackwardWeight are the largest fixed need. */
export const FIXED_SCRATCH: number = 128 * (128 + 32) * 4 + 4096;

const bits = new DataView(new ArrayBuffer(4));

/** The word that a kernel reads as this f32. */
export function floatWord(value: number): number {
  bits.setFloat32(0, value);
  return bits.getInt32(0);
}

/** Buffers and kernels of one backend. */
export class WasmMemory {
  readonly #pool: KernelPool;
  readonly #heap: SharedHeap;
  #scratch = 0;
  #scratchStride = 0;
  #buffer: ArrayBufferLike;
  #floats: Float32Array;
  #ints: Int32Array;

  constructor(pool: KernelPool) {
    this.#pool = pool;
    this.#heap = new SharedHeap(pool.memory, HEAP_START, pool.maximumBytes);
    this.#buffer = pool.memory.buffer;
    this.#floats = new Float32Array(this.#buffer);
    this.#ints = new Int32Array(this.#buffer);
  }

  /** The whole memory; ask again after anything that may allocate. */
  views(): { floats: Float32Array; ints: Int32Array } {
    // A shared memory that grew has a new, longer buffer over the same bytes.
    const buffer = this.#pool.memory.buffer;
    if (buffer !== this.#buffer) {
      this.#buffer = buffer;
      this.#floats = new Float32Array(buffer);
      this.#ints = new Int32Array(buffer);
    }
    return { floats: this.#floats, ints: this.#ints };
  }

  /** @throws `shape-mismatch` unless it is a live buffer of this backend. */
  tensor(tensor: Tensor): WasmTensor {
    if (!(tensor instanceof WasmTensor) || tensor.owner !== this || tensor.pointer === 0) {
      return refuseBuffer();
    }
    return tensor;
  }

  /** Address of a tensor that is read. */
  in(tensor: Tensor): number {
    const own = this.tensor(tensor);
    if (own.unwritten) {
      own.unwritten = false;
      this.run("fill", Math.ceil(own.length / FLOAT_BLOCK), own.length, own.pointer, own.length, 0);
    }
    return own.pointer;
  }

  /** Address of a tensor that is added to or written in part. */
  into(tensor: Tensor): number {
    const own = this.tensor(tensor);
    if (own.packed !== undefined) own.packed.stale = true;
    return this.in(own);
  }

  /** Address of a tensor that is written completely. */
  out(tensor: Tensor): number {
    const own = this.tensor(tensor);
    if (own.packed !== undefined) own.packed.stale = true;
    own.unwritten = false;
    return own.pointer;
  }

  /** @throws `shape-mismatch` unless it is a live buffer of this backend. */
  integers(tensor: IntTensor): WasmIntTensor {
    if (!(tensor instanceof WasmIntTensor) || tensor.owner !== this || tensor.pointer === 0) {
      return refuseBuffer();
    }
    return tensor;
  }

  /** @throws `shape-mismatch` unless it is a live cache of this backend, of the given shape. */
  cache(cache: KeyValueCache, shape?: AttentionShape): WasmCache {
    if (!(cache instanceof WasmCache) || cache.owner !== this || cache.keys === 0) {
      return refuseBuffer();
    }
    if (shape !== undefined) {
      expectLengths(
        "attention",
        ["key/value heads of the cache", cache.shape.keyValueHeads, shape.keyValueHeads],
        ["head width of the cache", cache.shape.headWidth, shape.headWidth],
      );
      if (shape.heads % shape.keyValueHeads !== 0) {
        throw new GimbalError(
          "shape-mismatch",
          `attention: ${shape.heads} heads are not a multiple of ${shape.keyValueHeads} key/value heads.`,
          { boundary: "compute" },
        );
      }
    }
    return cache;
  }

  /** Runs a kernel over `units` outputs; see KernelPool.run. */
  run(kernel: Kernel, units: number, work: number, ...args: number[]): void {
    this.#pool.run(kernel, units, work, args);
  }

  /** Work space for every thread: address and stride in bytes. Its contents do not survive the operation. */
  threadScratch(bytes: number): readonly [pointer: number, stride: number] {
    if (bytes <= this.#scratchStride) return [this.#scratch, this.#scratchStride];
    if (this.#scratch !== 0) this.#heap.release(this.#scratch);
    this.#scratch = 0;
    this.#scratchStride = 0;
    const stride = Math.ceil(Math.max(bytes, FIXED_SCRATCH) / 64) * 64 + 64;
    this.#scratch = this.#heap.allocate(stride * this.#pool.threads).pointer;
    this.#scratchStride = stride;
    return [this.#scratch, stride];
  }

  /** Copies small tables in, calls `use` with their addresses, and gives the memory back. */
  withTables(tables: readonly Int32Array[], use: (addresses: readonly number[]) => void): void {
    const sizes = tables.map((table) => table.length * 4 + 4);
    this.withBytes(sizes, (addresses) => {
      const { ints } = this.views();
      tables.forEach((table, i) => {
        ints.set(table, addresses[i] >>> 2);
      });
      use(addresses);
    });
  }

  /** A buffer of zeros. */
  allocate(length: number): WasmTensor {
    const block = this.#heap.allocate(Math.max(1, length) * 4);
    return new WasmTensor(length, this, block.pointer, !block.clean);
  }

  /** A buffer of integers. */
  allocateInts(values: Int32Array): WasmIntTensor {
    const { pointer } = this.#heap.allocate(Math.max(1, values.length) * 4);
    this.views().ints.set(values, pointer >>> 2);
    return new WasmIntTensor(values, this, pointer);
  }

  /** An empty cache. */
  allocateCache(slots: number, shape: AttentionShape): WasmCache {
    const cache = new WasmCache(slots, shape, this);
    for (const [field, bytes] of [
      ["keys", cache.keyBytes],
      ["values", cache.valueBytes],
    ] as const) {
      const block = this.#heap.allocate(bytes);
      cache[field] = block.pointer;
      if (!block.clean) this.#pool.zero(block.pointer, bytes);
    }
    return cache;
  }

  /** Gives a buffer's memory back, a weight's packed copies included. */
  free(buffer: Tensor | IntTensor | KeyValueCache): void {
    if (buffer instanceof WasmCache) {
      const cache = this.cache(buffer);
      this.#heap.release(cache.keys);
      this.#heap.release(cache.values);
      cache.keys = 0;
      return;
    }
    if (buffer instanceof WasmIntTensor) {
      const ints = this.integers(buffer);
      this.#heap.release(ints.pointer);
      ints.pointer = 0;
      return;
    }
    const tensor = this.tensor(buffer as Tensor);
    this.#heap.release(tensor.pointer);
    if (tensor.packed !== undefined) {
      if (tensor.packed.rows !== 0) this.#heap.release(tensor.packed.rows);
      if (tensor.packed.columns !== 0) this.#heap.release(tensor.packed.columns);
      tensor.packed = undefined;
    }
    tensor.pointer = 0;
  }

  /** Bytes for one operation, `use`d and given back. */
  withBytes(sizes: readonly number[], use: (addresses: readonly number[]) => void): void {
    const addresses = sizes.map((bytes) => this.#heap.allocate(bytes).pointer);
    try {
      use(addresses);
    } finally {
      for (const address of addresses) this.#heap.release(address);
    }
  }

  /** Runs an elementwise kernel: target, length, then `rest`. */
  elementwise(
    kernel: Kernel,
    length: number,
    workPerFloat: number,
    target: number,
    rest: readonly number[],
  ): void {
    const units = Math.ceil(length / FLOAT_BLOCK);
    this.run(kernel, units, length * workPerFloat, target, length, ...rest);
  }

  /** Notes that a weight [N,K] changed. */
  refreshWeight(weight: Tensor, outputs: number, inputs: number): void {
    const own = this.tensor(weight);
    expectLengths("refreshWeight", ["weight", own.length, outputs * inputs]);
    const packed = own.packed;
    if (packed !== undefined && packed.outputs === outputs && packed.inputs === inputs) {
      packed.rowsFresh = false;
      packed.columnsFresh = false;
      packed.stale = false;
      return;
    }
    if (packed !== undefined) {
      if (packed.rows !== 0) this.#heap.release(packed.rows);
      if (packed.columns !== 0) this.#heap.release(packed.columns);
    }
    own.packed = {
      outputs,
      inputs,
      rows: 0,
      columns: 0,
      rowsFresh: false,
      columnsFresh: false,
      stale: false,
    };
  }

  /** Address of a packed copy; made on first use after a refresh, so that sampling pays for one only. */
  packed(weight: Tensor, outputs: number, inputs: number, kind: "rows" | "columns"): number {
    const own = this.tensor(weight);
    const packed = own.packed;
    if (packed === undefined || packed.outputs !== outputs || packed.inputs !== inputs) {
      throw new GimbalError(
        "shape-mismatch",
        `linear: the weight [${outputs}, ${inputs}] was not prepared; call refreshWeight first.`,
        { boundary: "compute" },
      );
    }
    if (packed.stale) {
      throw new GimbalError(
        "shape-mismatch",
        "Found a linear weight that changed; expected refreshWeight before its next use.",
        { boundary: "compute" },
      );
    }
    const fresh = kind === "rows" ? "rowsFresh" : "columnsFresh";
    if (!packed[fresh]) {
      const panels = Math.ceil((kind === "rows" ? outputs : inputs) / 16);
      const depth = kind === "rows" ? inputs : outputs;
      if (packed[kind] === 0) packed[kind] = this.#heap.allocate(panels * depth * 64).pointer;
      const kernel = kind === "rows" ? "packRows" : "packColumns";
      const work = outputs * inputs * 2;
      this.run(kernel, panels, work, packed[kind], this.in(own), outputs, inputs);
      packed[fresh] = true;
    }
    return packed[kind];
  }
}
