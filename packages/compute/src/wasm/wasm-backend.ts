/**
 * The CPU backend: WASM SIMD kernels (assembly/) on one shared memory, spread over threads.
 *
 * Laws: operations run at once and in order; results never depend on the number of threads or on how rows are
 * batched (each kernel's header says how); shapes and indices are checked here, because kernels check nothing.
 * The file is long because the port is: one method an operation.
 */
import { GimbalError } from "@gimbal-rl/core";
import type {
  AdamWOptions,
  AttentionPlan,
  AttentionShape,
  Backend,
  BackendInfo,
  IntTensor,
  KeyValueCache,
  Tensor,
} from "../backend.js";
import { expectLengths } from "../reference/buffers.js";
import {
  backwardPanels,
  checkPlan,
  forwardBlocks,
  rowStrideFor,
  unitRows,
} from "./attention-layout.js";
import { expectIndices, refuseBuffer, WasmCache, WasmIntTensor, WasmTensor } from "./buffers.js";
import { SharedHeap } from "./heap.js";
import { HEAP_START, type Kernel, KernelPool } from "./pool.js";

/** Options of {@link createWasmBackend}. */
export interface WasmBackendOptions {
  /** Threads that compute, the calling one included. Default: the host's processors, at most 8. */
  readonly threads?: number;
}

/** Rows of one unit of a matrix product; with 16 outputs a unit's operands fit the second-level cache. */
const ROW_BLOCK = 64;
/** Floats of one unit of an elementwise kernel; fixed in assembly/elementwise.ts. */
const FLOAT_BLOCK = 1024;
/** Work space of one thread: the packed operands of linearBackwardWeight are the largest fixed need. */
const FIXED_SCRATCH = 128 * (128 + 32) * 4 + 4096;

const bits = new DataView(new ArrayBuffer(4));
function floatWord(value: number): number {
  bits.setFloat32(0, value);
  return bits.getInt32(0);
}

/** Temperature 0 (greedy) reports log-probabilities at temperature 1. */
function divisor(temperature: number): number {
  return floatWord(temperature === 0 ? 1 : temperature);
}

function hostProcessors(): number {
  const host = globalThis as {
    process?: { getBuiltinModule?: (id: string) => unknown };
    navigator?: { hardwareConcurrency?: number };
  };
  const os = host.process?.getBuiltinModule?.("node:os") as
    | { availableParallelism(): number }
    | undefined;
  return os?.availableParallelism() ?? host.navigator?.hardwareConcurrency ?? 1;
}

/**
 * Starts the CPU backend, in Node (main thread or worker) or in a cross-origin isolated browser page.
 *
 * Helper threads do not keep the process alive; dispose the backend to end them sooner.
 * @throws {GimbalError} `unavailable` without shared memory or WASM SIMD; `bad-usage` for a thread count below 1.
 * @example
 * const backend = await createWasmBackend({ threads: 2 });
 */
export async function createWasmBackend(options: WasmBackendOptions = {}): Promise<Backend> {
  const threads = options.threads ?? Math.min(8, hostProcessors());
  if (!Number.isInteger(threads) || threads < 1 || threads > 256) {
    throw new GimbalError(
      "bad-usage",
      `Found ${threads} threads; expected an integer from 1 to 256.`,
    );
  }
  return new WasmBackend(await KernelPool.start(threads));
}

class WasmBackend implements Backend {
  readonly info: BackendInfo;
  readonly #pool: KernelPool;
  readonly #heap: SharedHeap;
  #scratch = 0;
  #scratchStride = 0;
  #ended = false;
  #buffer: ArrayBufferLike;
  #floats: Float32Array;
  #ints: Int32Array;

  constructor(pool: KernelPool) {
    this.#pool = pool;
    this.#heap = new SharedHeap(pool.memory, HEAP_START, pool.maximumBytes);
    this.info = { id: "wasm", variant: "simd", threads: pool.threads };
    this.#buffer = pool.memory.buffer;
    this.#floats = new Float32Array(this.#buffer);
    this.#ints = new Int32Array(this.#buffer);
  }

  // --- memory ---

  #views(): { floats: Float32Array; ints: Int32Array } {
    // A shared memory that grew has a new, longer buffer over the same bytes.
    const buffer = this.#pool.memory.buffer;
    if (buffer !== this.#buffer) {
      this.#buffer = buffer;
      this.#floats = new Float32Array(buffer);
      this.#ints = new Int32Array(buffer);
    }
    return { floats: this.#floats, ints: this.#ints };
  }

  #tensor(tensor: Tensor): WasmTensor {
    if (!(tensor instanceof WasmTensor) || tensor.owner !== this || tensor.pointer === 0) {
      return refuseBuffer();
    }
    return tensor;
  }

  /** Address of a tensor that is read. */
  #in(tensor: Tensor): number {
    const own = this.#tensor(tensor);
    if (own.unwritten) {
      own.unwritten = false;
      this.#run(
        "fill",
        Math.ceil(own.length / FLOAT_BLOCK),
        own.length,
        own.pointer,
        own.length,
        0,
      );
    }
    return own.pointer;
  }

  /** Address of a tensor that is added to or written in part. */
  #into(tensor: Tensor): number {
    const own = this.#tensor(tensor);
    if (own.packed !== undefined) own.packed.stale = true;
    return this.#in(own);
  }

  /** Address of a tensor that is written completely. */
  #out(tensor: Tensor): number {
    const own = this.#tensor(tensor);
    if (own.packed !== undefined) own.packed.stale = true;
    own.unwritten = false;
    return own.pointer;
  }

  #integers(tensor: IntTensor): WasmIntTensor {
    if (!(tensor instanceof WasmIntTensor) || tensor.owner !== this || tensor.pointer === 0) {
      return refuseBuffer();
    }
    return tensor;
  }

  #cache(cache: KeyValueCache, shape?: AttentionShape): WasmCache {
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

  #run(kernel: Kernel, units: number, work: number, ...args: number[]): void {
    this.#pool.run(kernel, units, work, args);
  }

  /** Work space for every thread; contents do not survive the operation. */
  #threadScratch(bytes: number): void {
    if (bytes <= this.#scratchStride) return;
    if (this.#scratch !== 0) this.#heap.release(this.#scratch);
    this.#scratch = 0;
    this.#scratchStride = 0;
    const stride = Math.ceil(Math.max(bytes, FIXED_SCRATCH) / 64) * 64 + 64;
    this.#scratch = this.#heap.allocate(stride * this.#pool.threads).pointer;
    this.#scratchStride = stride;
  }

  /** Copies small tables in, calls `use` with their addresses, and gives the memory back. */
  #withTables(tables: readonly Int32Array[], use: (addresses: readonly number[]) => void): void {
    const addresses = tables.map((table) => this.#heap.allocate(table.length * 4 + 4).pointer);
    try {
      const { ints } = this.#views();
      tables.forEach((table, i) => {
        ints.set(table, addresses[i] >>> 2);
      });
      use(addresses);
    } finally {
      for (const address of addresses) this.#heap.release(address);
    }
  }

  allocate(length: number): Tensor {
    const block = this.#heap.allocate(Math.max(1, length) * 4);
    return new WasmTensor(length, this, block.pointer, !block.clean);
  }

  allocateInts(values: Int32Array): IntTensor {
    const { pointer } = this.#heap.allocate(Math.max(1, values.length) * 4);
    this.#views().ints.set(values, pointer >>> 2);
    return new WasmIntTensor(values, this, pointer);
  }

  allocateCache(slots: number, shape: AttentionShape): KeyValueCache {
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

  free(buffer: Tensor | IntTensor | KeyValueCache): void {
    if (buffer instanceof WasmCache) {
      const cache = this.#cache(buffer);
      this.#heap.release(cache.keys);
      this.#heap.release(cache.values);
      cache.keys = 0;
      return;
    }
    if (buffer instanceof WasmIntTensor) {
      const ints = this.#integers(buffer);
      this.#heap.release(ints.pointer);
      ints.pointer = 0;
      return;
    }
    const tensor = this.#tensor(buffer as Tensor);
    this.#heap.release(tensor.pointer);
    if (tensor.packed !== undefined) {
      if (tensor.packed.rows !== 0) this.#heap.release(tensor.packed.rows);
      if (tensor.packed.columns !== 0) this.#heap.release(tensor.packed.columns);
      tensor.packed = undefined;
    }
    tensor.pointer = 0;
  }

  write(target: Tensor, values: Float32Array, offset = 0): void {
    const own = this.#tensor(target);
    this.#expectRange("write", own.length, offset, values.length);
    const pointer = values.length === own.length ? this.#out(own) : this.#into(own);
    this.#views().floats.set(values, (pointer >>> 2) + offset);
  }

  async read(source: Tensor, offset = 0, length = source.length - offset): Promise<Float32Array> {
    this.#expectRange("read", source.length, offset, length);
    const first = (this.#in(source) >>> 2) + offset;
    const values = new Float32Array(length);
    values.set(this.#views().floats.subarray(first, first + length));
    return values;
  }

  #expectRange(operation: string, length: number, offset: number, count: number): void {
    if (offset < 0 || count < 0 || offset + count > length) {
      throw new GimbalError(
        "shape-mismatch",
        `${operation}: values ${offset} to ${offset + count - 1} of a buffer of ${length}.`,
        { boundary: "compute" },
      );
    }
  }

  fill(target: Tensor, value: number): void {
    const own = this.#tensor(target);
    if (Object.is(value, 0)) {
      this.#out(own);
      own.unwritten = true;
    }
    else this.#elementwise("fill", own.length, 1, this.#out(own), [floatWord(value)]);
  }

  copy(target: Tensor, source: Tensor): void {
    expectLengths("copy", ["source", source.length, target.length]);
    if (target === source) return;
    const from = this.#in(source);
    this.#elementwise("copy", target.length, 1, this.#out(target), [from]);
  }

  #elementwise(
    kernel: Kernel,
    length: number,
    workPerFloat: number,
    target: number,
    rest: readonly number[],
  ): void {
    const units = Math.ceil(length / FLOAT_BLOCK);
    this.#run(kernel, units, length * workPerFloat, target, length, ...rest);
  }

  // --- rows ---

  embed(out: Tensor, table: Tensor, ids: IntTensor, width: number): void {
    this.#gather("embed", out, table, ids, width);
  }

  embedBackward(gradTable: Tensor, gradOut: Tensor, ids: IntTensor, width: number): void {
    this.#scatter("embedBackward", gradTable, gradOut, ids, width);
  }

  gatherRows(out: Tensor, source: Tensor, indices: IntTensor, width: number): void {
    this.#gather("gatherRows", out, source, indices, width);
  }

  scatterAddRows(target: Tensor, source: Tensor, indices: IntTensor, width: number): void {
    this.#scatter("scatterAddRows", target, source, indices, width);
  }

  #gather(name: string, out: Tensor, table: Tensor, ids: IntTensor, width: number): void {
    const rows = this.#integers(ids);
    expectLengths(name, ["out", out.length, rows.length * width]);
    expectIndices(name, rows, Math.floor(table.length / width));
    const from = this.#in(table);
    const size = out.length;
    this.#run(
      "gatherRows",
      rows.length,
      size,
      this.#out(out),
      from,
      rows.pointer,
      rows.length,
      width,
    );
  }

  #scatter(name: string, table: Tensor, source: Tensor, ids: IntTensor, width: number): void {
    const rows = this.#integers(ids);
    expectLengths(name, ["source", source.length, rows.length * width]);
    expectIndices(name, rows, Math.floor(table.length / width));
    const from = this.#in(source);
    const units = Math.ceil(width / 16);
    const size = source.length;
    this.#run(
      "scatterAddRows",
      units,
      size,
      this.#into(table),
      from,
      rows.pointer,
      rows.length,
      width,
    );
  }

  rmsNorm(
    out: Tensor,
    inverseRms: Tensor,
    x: Tensor,
    weight: Tensor,
    width: number,
    epsilon: number,
  ): void {
    const rows = inverseRms.length;
    expectLengths(
      "rmsNorm",
      ["x", x.length, rows * width],
      ["out", out.length, rows * width],
      ["weight", weight.length, width],
    );
    const from = this.#in(x);
    const scale = this.#in(weight);
    const to = this.#out(out);
    const kept = this.#out(inverseRms);
    this.#run("rmsNorm", rows, x.length * 4, to, kept, from, scale, width, floatWord(epsilon));
  }

  rmsNormBackward(
    gradX: Tensor,
    gradWeight: Tensor,
    gradOut: Tensor,
    x: Tensor,
    inverseRms: Tensor,
    weight: Tensor,
    width: number,
  ): void {
    const rows = inverseRms.length;
    expectLengths(
      "rmsNormBackward",
      ["gradX", gradX.length, rows * width],
      ["gradOut", gradOut.length, rows * width],
      ["x", x.length, rows * width],
      ["gradWeight", gradWeight.length, width],
      ["weight", weight.length, width],
    );
    const g = this.#in(gradOut);
    const input = this.#in(x);
    const kept = this.#in(inverseRms);
    const work = x.length * 4;
    // Weight first: gradX may be the buffer of gradOut.
    const sums = this.#into(gradWeight);
    this.#run(
      "rmsNormBackwardWeight",
      Math.ceil(width / 16),
      work,
      sums,
      g,
      input,
      kept,
      rows,
      width,
    );
    const scale = this.#in(weight);
    const to = this.#into(gradX);
    this.#run("rmsNormBackwardInput", rows, work * 2, to, g, input, kept, scale, width);
  }

  rope(
    x: Tensor,
    positions: IntTensor,
    cosSin: Tensor,
    heads: number,
    headWidth: number,
    inverse: boolean,
  ): void {
    const rows = this.#integers(positions);
    expectLengths("rope", ["x", x.length, rows.length * heads * headWidth]);
    expectIndices("rope", rows, Math.floor(cosSin.length / headWidth));
    const table = this.#in(cosSin);
    const sign = floatWord(inverse ? -1 : 1);
    const work = x.length * 3;
    const to = this.#into(x);
    this.#run("rope", rows.length, work, to, rows.pointer, table, heads, headWidth, sign);
  }

  // --- matrix products ---

  refreshWeight(weight: Tensor, outputs: number, inputs: number): void {
    const own = this.#tensor(weight);
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
  #packed(weight: Tensor, outputs: number, inputs: number, kind: "rows" | "columns"): number {
    const own = this.#tensor(weight);
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
      this.#run(kernel, panels, work, packed[kind], this.#in(own), outputs, inputs);
      packed[fresh] = true;
    }
    return packed[kind];
  }

  /** out[R,N] (= or +=) x[R,K] panels. */
  #product(
    out: number,
    x: number,
    panels: number,
    bias: number,
    rows: number,
    outputs: number,
    inputs: number,
    mode: 0 | 1,
  ): void {
    this.#threadScratch(FIXED_SCRATCH);
    const units = Math.ceil(rows / ROW_BLOCK) * Math.ceil(outputs / 16);
    const work = 2 * rows * outputs * inputs;
    const scratch = [this.#scratch, this.#scratchStride] as const;
    const sizes = [rows, outputs, inputs, ROW_BLOCK, mode] as const;
    this.#run("linear", units, work, out, x, panels, bias, ...sizes, ...scratch);
  }

  linear(
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    outputs: number,
    inputs: number,
    bias?: Tensor,
  ): void {
    const rows = Math.floor(x.length / inputs);
    expectLengths(
      "linear",
      ["x", x.length, rows * inputs],
      ["out", out.length, rows * outputs],
      ["weight", weight.length, outputs * inputs],
      ["bias", bias?.length ?? outputs, outputs],
    );
    const panels = this.#packed(weight, outputs, inputs, "rows");
    const from = this.#in(x);
    const offset = bias === undefined ? 0 : this.#in(bias);
    this.#product(this.#out(out), from, panels, offset, rows, outputs, inputs, 0);
  }

  linearBackwardInput(
    gradX: Tensor,
    gradOut: Tensor,
    weight: Tensor,
    outputs: number,
    inputs: number,
  ): void {
    const rows = Math.floor(gradX.length / inputs);
    expectLengths(
      "linearBackwardInput",
      ["gradX", gradX.length, rows * inputs],
      ["gradOut", gradOut.length, rows * outputs],
      ["weight", weight.length, outputs * inputs],
    );
    const panels = this.#packed(weight, outputs, inputs, "columns");
    const from = this.#in(gradOut);
    // Adding a sum to zeros that were never written is storing it (0 + x = x, but for the sign of a zero sum).
    this.#product(this.#into(gradX), from, panels, 0, rows, inputs, outputs, 1);
  }

  linearBackwardWeight(
    gradWeight: Tensor,
    gradOut: Tensor,
    x: Tensor,
    outputs: number,
    inputs: number,
    gradBias?: Tensor,
  ): void {
    const rows = Math.floor(x.length / inputs);
    expectLengths(
      "linearBackwardWeight",
      ["x", x.length, rows * inputs],
      ["gradOut", gradOut.length, rows * outputs],
      ["gradWeight", gradWeight.length, outputs * inputs],
      ["gradBias", gradBias?.length ?? outputs, outputs],
    );
    this.#threadScratch(FIXED_SCRATCH);
    const g = this.#in(gradOut);
    const input = this.#in(x);
    const units = Math.ceil(outputs / 32) * Math.ceil(inputs / 128);
    const work = 2 * rows * outputs * inputs;
    const scratch = [this.#scratch, this.#scratchStride] as const;
    const to = this.#into(gradWeight);
    this.#run("linearBackwardWeight", units, work, to, g, input, rows, outputs, inputs, ...scratch);
    if (gradBias !== undefined) {
      const sums = this.#into(gradBias);
      this.#run("columnSums", Math.ceil(outputs / 16), gradOut.length, sums, g, rows, outputs);
    }
  }

  // --- attention ---

  writeCache(cache: KeyValueCache, keys: Tensor, values: Tensor, slots: IntTensor): void {
    const own = this.#cache(cache);
    const rows = this.#integers(slots);
    const { keyValueHeads, headWidth } = own.shape;
    const length = rows.length * keyValueHeads * headWidth;
    expectLengths("writeCache", ["keys", keys.length, length], ["values", values.length, length]);
    expectIndices("writeCache", rows, own.slots);
    const k = this.#in(keys);
    const v = this.#in(values);
    const sizes = [keyValueHeads, headWidth, own.valueWidth, own.blocks] as const;
    const work = length * 4;
    this.#run("writeCache", rows.length, work, k, v, own.keys, own.values, rows.pointer, ...sizes);
  }

  attention(
    out: Tensor,
    logSumExp: Tensor,
    queries: Tensor,
    cache: KeyValueCache,
    plan: AttentionPlan,
    shape: AttentionShape,
  ): void {
    const own = this.#cache(cache, shape);
    const { heads, keyValueHeads, headWidth } = shape;
    const rows = Math.floor(logSumExp.length / heads);
    expectLengths(
      "attention",
      ["logSumExp", logSumExp.length, rows * heads],
      ["queries", queries.length, rows * heads * headWidth],
      ["out", out.length, rows * heads * headWidth],
    );
    const { prefixes, covered } = checkPlan(plan, own.slots, rows);
    const blocks = forwardBlocks(plan, prefixes, shape);
    const rowStride = rowStrideFor(blocks.longest);
    const group = heads / keyValueHeads;
    const count = unitRows(shape) * group;
    this.#threadScratch(count * (headWidth + own.valueWidth + 16 + rowStride) * 4 + 128);
    const q = this.#in(queries);
    // Rows that no segment covers keep what they held.
    const to = covered === rows ? this.#out(out) : this.#in(out);
    const kept = covered === rows ? this.#out(logSumExp) : this.#in(logSumExp);
    this.#withPlan(plan, prefixes, [blocks.table], (planAt, [table]) => {
      const work = blocks.pairs * heads * (headWidth * 4 + 20);
      this.#run(
        "attention",
        blocks.count * keyValueHeads,
        work,
        ...[to, kept, q, own.keys, own.values, table, planAt],
        ...[heads, keyValueHeads, headWidth, own.valueWidth, own.blocks],
        floatWord(1 / Math.sqrt(headWidth)),
        ...[this.#scratch, this.#scratchStride, rowStride],
      );
    });
  }

  /** Puts a plan into memory: six addresses that `openSegment` reads. */
  #withPlan(
    plan: AttentionPlan,
    prefixes: Int32Array,
    tables: readonly Int32Array[],
    use: (planAt: number, tables: readonly number[]) => void,
  ): void {
    const { rowStarts, selfSlots, spanOffsets, spanSlots, spanLengths } = plan;
    const arrays = [rowStarts, selfSlots, spanOffsets, spanSlots, spanLengths, prefixes];
    this.#withTables([...arrays, ...tables], (addresses) => {
      this.#withTables([Int32Array.from(addresses.slice(0, 6))], ([planAt]) => {
        use(planAt, addresses.slice(6));
      });
    });
  }

  attentionBackward(
    gradQueries: Tensor,
    gradKeys: Tensor,
    gradValues: Tensor,
    gradOut: Tensor,
    out: Tensor,
    logSumExp: Tensor,
    queries: Tensor,
    cache: KeyValueCache,
    plan: AttentionPlan,
    shape: AttentionShape,
  ): void {
    const own = this.#cache(cache, shape);
    const { heads, keyValueHeads, headWidth } = shape;
    const rows = Math.floor(logSumExp.length / heads);
    const queryLength = rows * heads * headWidth;
    const keyLength = own.slots * keyValueHeads * headWidth;
    expectLengths(
      "attentionBackward",
      ["logSumExp", logSumExp.length, rows * heads],
      ["queries", queries.length, queryLength],
      ["out", out.length, queryLength],
      ["gradOut", gradOut.length, queryLength],
      ["gradQueries", gradQueries.length, queryLength],
      ["gradKeys", gradKeys.length, keyLength],
      ["gradValues", gradValues.length, keyLength],
    );
    const { prefixes } = checkPlan(plan, own.slots, rows);
    const panels = backwardPanels(plan, prefixes, shape);
    if (panels.length === 0) return;
    const group = heads / keyValueHeads;
    const width = own.valueWidth;
    this.#threadScratch(unitRows(shape) * group * (width + 16) * 4 + 256);
    const floats = Math.max(...panels.map((panel) => panel.floats));
    const panelRows = Math.max(...panels.map((panel) => panel.rows));
    const packBytes = keyValueHeads * panelRows * group * width * 4;
    const sizes = [own.valueBytes, own.keyBytes]; // keys by slot, values by block
    sizes.push(
      keyValueHeads * floats * 4 + 64,
      keyValueHeads * floats * 4 + 64,
      packBytes,
      packBytes,
    );
    const temporaries = sizes.map((bytes) => this.#heap.allocate(bytes).pointer);
    const [keysBySlot, valuesByBlock, p, s, packedQ, packedG] = temporaries;
    const addresses = [gradQueries, gradOut, out, logSumExp, queries].map((t) => this.#in(t));
    const keyGradients = [gradKeys, gradValues].map((t) => this.#in(t));
    const shapeWords = [heads, keyValueHeads, headWidth, width];
    const scale = floatWord(1 / Math.sqrt(headWidth));
    const scratch = [this.#scratch, this.#scratchStride];
    this.#run(
      "turnCache",
      own.blocks * keyValueHeads,
      keyLength * 8,
      ...[own.keys, own.values, keysBySlot, valuesByBlock, headWidth, width],
    );
    for (const panel of panels) {
      const tables = [panel.blocks.table, panel.parts.table];
      this.#withPlan(plan, prefixes, tables, (planAt, [blocks, parts]) => {
        const work = panel.pairs * keyValueHeads * headWidth * 2;
        this.#run(
          "attentionBackwardRows",
          panel.blocks.count * keyValueHeads,
          work * 3,
          ...[...addresses, own.keys, keysBySlot, valuesByBlock, blocks, planAt, ...shapeWords],
          ...[own.blocks, scale, ...scratch, p, s, floats, packedQ, packedG, panelRows],
        );
        this.#run(
          "attentionBackwardKeys",
          panel.slotBlocks * keyValueHeads,
          work * 2,
          ...[...keyGradients, p, s, parts, panel.parts.count, planAt, ...shapeWords],
          ...[floats, packedQ, packedG, panelRows, ...scratch, panel.firstSlotBlock],
        );
      });
    }
    for (const temporary of temporaries) this.#heap.release(temporary);
  }

  // --- elementwise ---

  swiglu(out: Tensor, gate: Tensor, up: Tensor): void {
    const n = out.length;
    expectLengths("swiglu", ["gate", gate.length, n], ["up", up.length, n]);
    const inputs = [this.#in(gate), this.#in(up)];
    this.#elementwise("swiglu", n, 12, this.#out(out), inputs);
  }

  swigluBackward(
    gradGate: Tensor,
    gradUp: Tensor,
    gradOut: Tensor,
    gate: Tensor,
    up: Tensor,
  ): void {
    const n = gradOut.length;
    expectLengths(
      "swigluBackward",
      ["gradGate", gradGate.length, n],
      ["gradUp", gradUp.length, n],
      ["gate", gate.length, n],
      ["up", up.length, n],
    );
    const rest = [gradUp, gradOut, gate, up].map((t) => this.#in(t));
    this.#elementwise("swigluBackward", n, 16, this.#into(gradGate), rest);
  }

  addScaled(target: Tensor, source: Tensor, scale: number): void {
    expectLengths("addScaled", ["source", source.length, target.length]);
    const rest = [this.#in(source), floatWord(scale)];
    this.#elementwise("addScaled", target.length, 2, this.#into(target), rest);
  }

  // --- log-probabilities ---

  #rows(name: string, logits: Tensor, vocabulary: number): number {
    const rows = Math.floor(logits.length / vocabulary);
    expectLengths(name, ["logits", logits.length, rows * vocabulary]);
    return rows;
  }

  logSumExp(out: Tensor, logits: Tensor, vocabulary: number, temperature: number): void {
    const rows = this.#rows("logSumExp", logits, vocabulary);
    expectLengths("logSumExp", ["out", out.length, rows]);
    const from = this.#in(logits);
    const to = this.#out(out);
    this.#run("logSumExp", rows, logits.length * 8, to, from, vocabulary, divisor(temperature));
  }

  gatherLogprobs(
    out: Tensor,
    logits: Tensor,
    logSumExp: Tensor,
    rows: IntTensor,
    targets: IntTensor,
    vocabulary: number,
    temperature: number,
  ): void {
    const count = this.#rows("gatherLogprobs", logits, vocabulary);
    const ownRows = this.#integers(rows);
    const ownTargets = this.#integers(targets);
    const n = out.length;
    expectLengths(
      "gatherLogprobs",
      ["logSumExp", logSumExp.length, count],
      ["rows", rows.length, n],
      ["targets", targets.length, n],
    );
    expectIndices("gatherLogprobs", ownRows, count);
    expectIndices("gatherLogprobs", ownTargets, vocabulary);
    const inputs = [this.#in(logits), this.#in(logSumExp), ownRows.pointer, ownTargets.pointer];
    const to = this.#out(out);
    this.#run("gatherLogprobs", n, n * 8, to, ...inputs, vocabulary, divisor(temperature));
  }

  logprobsBackward(
    gradLogits: Tensor,
    gradLogprobs: Tensor,
    logits: Tensor,
    logSumExp: Tensor,
    rows: IntTensor,
    targets: IntTensor,
    vocabulary: number,
    temperature: number,
  ): void {
    const count = this.#rows("logprobsBackward", logits, vocabulary);
    const ownRows = this.#integers(rows);
    const ownTargets = this.#integers(targets);
    expectLengths(
      "logprobsBackward",
      ["gradLogits", gradLogits.length, logits.length],
      ["logSumExp", logSumExp.length, count],
      ["rows", rows.length, gradLogprobs.length],
      ["targets", targets.length, gradLogprobs.length],
    );
    expectIndices("logprobsBackward", ownRows, count);
    expectIndices("logprobsBackward", ownTargets, vocabulary);
    // Terms by row, each row's in order.
    const first = ownRows.pointer >>> 2;
    const list = this.#views().ints.subarray(first, first + rows.length);
    const offsets = new Int32Array(count + 1);
    for (const row of list) offsets[row + 1] += 1;
    for (let r = 0; r < count; r += 1) offsets[r + 1] += offsets[r];
    const next = offsets.slice();
    const order = new Int32Array(rows.length);
    for (let t = 0; t < list.length; t += 1) {
      order[next[list[t]]] = t;
      next[list[t]] += 1;
    }
    this.#withTables([offsets, order], ([offsetsAt, orderAt]) => {
      const inputs = [this.#in(gradLogprobs), this.#in(logits), this.#in(logSumExp)];
      const tables = [offsetsAt, orderAt, ownTargets.pointer];
      const to = this.#out(gradLogits);
      const work = logits.length * 10;
      const t = divisor(temperature);
      this.#run("logprobsBackward", count, work, to, ...inputs, ...tables, vocabulary, t);
    });
  }

  async sample(
    ids: Int32Array,
    logprobs: Float32Array,
    logits: Tensor,
    uniforms: Float32Array,
    vocabulary: number,
    temperature: number,
  ): Promise<void> {
    const rows = this.#rows("sample", logits, vocabulary);
    expectLengths(
      "sample",
      ["ids", ids.length, rows],
      ["logprobs", logprobs.length, rows],
      ["uniforms", uniforms.length, rows],
    );
    const empty = new Int32Array(rows);
    const uniformWords = new Int32Array(uniforms.buffer, uniforms.byteOffset, rows);
    this.#withTables([empty, empty, uniformWords], ([idsAt, logprobsAt, uniformsAt]) => {
      const from = this.#in(logits);
      const work = logits.length * 10;
      const args = [idsAt, logprobsAt, from, uniformsAt, vocabulary, floatWord(temperature)];
      this.#run("sample", rows, work, ...args);
      const { ints, floats } = this.#views();
      ids.set(ints.subarray(idsAt >>> 2, (idsAt >>> 2) + rows));
      logprobs.set(floats.subarray(logprobsAt >>> 2, (logprobsAt >>> 2) + rows));
    });
    const broken = ids.indexOf(-1);
    if (broken >= 0) {
      throw new GimbalError(
        "engine-failed",
        `sample: row ${broken} has no probabilities (its logits are not numbers); the weights are broken.`,
        { boundary: "compute" },
      );
    }
  }

  // --- optimiser ---

  addSumOfSquares(out: Tensor, x: Tensor): void {
    const blocks = Math.ceil(x.length / FLOAT_BLOCK);
    const { pointer } = this.#heap.allocate(blocks * 8 + 8);
    const from = this.#in(x);
    this.#elementwise("sumOfSquares", x.length, 4, pointer, [from]);
    const first = this.#into(out) >>> 2;
    // Partial sums of 1024 floats each, cut at fixed indices and added in order.
    const partials = new Float64Array(this.#pool.memory.buffer, pointer, blocks);
    let sum = 0;
    for (const partial of partials) sum += partial;
    this.#views().floats[first] += sum;
    this.#heap.release(pointer);
  }

  adamW(
    weight: Tensor,
    gradient: Tensor,
    firstMoment: Tensor,
    secondMoment: Tensor,
    options: AdamWOptions,
  ): void {
    const n = weight.length;
    expectLengths(
      "adamW",
      ["gradient", gradient.length, n],
      ["firstMoment", firstMoment.length, n],
      ["secondMoment", secondMoment.length, n],
    );
    const { learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale } = options;
    const scalars = [
      ...[learningRate, beta1, 1 - beta1, beta2, 1 - beta2, epsilon],
      ...[
        learningRate * weightDecay,
        gradientScale,
        1 / (1 - beta1 ** step),
        1 / (1 - beta2 ** step),
      ],
    ].map(floatWord);
    const buffers = [gradient, firstMoment, secondMoment].map((t) => this.#in(t));
    this.#elementwise("adamW", n, 20, this.#into(weight), [...buffers, ...scalars]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#pool.end();
  }
}
