/**
 * The CPU backend: WASM SIMD kernels (assembly/) on one shared memory, spread over threads.
 *
 * Laws: operations run at once and in order; results never depend on the number of threads or on how rows are
 * batched (each kernel's header says how); shapes and indices are checked first, because kernels check nothing.
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
import { attention, attentionBackward, writeCache } from "./attention-operations.js";
import { expectIndices } from "./buffers.js";
import { gatherLogprobs, logprobsBackward, logSumExp, sample } from "./logprob-operations.js";
import { KernelPool } from "./pool.js";
import { FIXED_SCRATCH, FLOAT_BLOCK, floatWord, WasmMemory } from "./wasm-memory.js";

/** Options of {@link createWasmBackend}. */
export interface WasmBackendOptions {
  /** Threads that compute, the calling one included. Default: the host's processors, at most 8. */
  readonly threads?: number;
}

/** Rows of one unit of a matrix product; with 16 outputs a unit's operands fit the second-level cache. */
const ROW_BLOCK = 64;

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
  readonly #memory: WasmMemory;
  #ended = false;

  constructor(pool: KernelPool) {
    this.#pool = pool;
    this.#memory = new WasmMemory(pool);
    this.info = { id: "wasm", variant: "simd", threads: pool.threads };
  }

  // --- memory ---

  allocate(length: number): Tensor {
    return this.#memory.allocate(length);
  }

  allocateInts(values: Int32Array): IntTensor {
    return this.#memory.allocateInts(values);
  }

  allocateCache(slots: number, shape: AttentionShape): KeyValueCache {
    return this.#memory.allocateCache(slots, shape);
  }

  free(buffer: Tensor | IntTensor | KeyValueCache): void {
    this.#memory.free(buffer);
  }

  write(target: Tensor, values: Float32Array, offset = 0): void {
    const own = this.#memory.tensor(target);
    this.#expectRange("write", own.length, offset, values.length);
    const pointer = values.length === own.length ? this.#memory.out(own) : this.#memory.into(own);
    this.#memory.views().floats.set(values, (pointer >>> 2) + offset);
  }

  async read(source: Tensor, offset = 0, length = source.length - offset): Promise<Float32Array> {
    this.#expectRange("read", source.length, offset, length);
    const first = (this.#memory.in(source) >>> 2) + offset;
    const values = new Float32Array(length);
    values.set(this.#memory.views().floats.subarray(first, first + length));
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
    const own = this.#memory.tensor(target);
    if (Object.is(value, 0)) {
      this.#memory.out(own);
      own.unwritten = true;
    } else
      this.#memory.elementwise("fill", own.length, 1, this.#memory.out(own), [floatWord(value)]);
  }

  copy(target: Tensor, source: Tensor): void {
    expectLengths("copy", ["source", source.length, target.length]);
    if (target === source) return;
    const from = this.#memory.in(source);
    this.#memory.elementwise("copy", target.length, 1, this.#memory.out(target), [from]);
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
    const rows = this.#memory.integers(ids);
    expectLengths(name, ["out", out.length, rows.length * width]);
    expectIndices(name, rows, Math.floor(table.length / width));
    const from = this.#memory.in(table);
    const size = out.length;
    this.#memory.run(
      "gatherRows",
      rows.length,
      size,
      this.#memory.out(out),
      from,
      rows.pointer,
      rows.length,
      width,
    );
  }

  #scatter(name: string, table: Tensor, source: Tensor, ids: IntTensor, width: number): void {
    const rows = this.#memory.integers(ids);
    expectLengths(name, ["source", source.length, rows.length * width]);
    expectIndices(name, rows, Math.floor(table.length / width));
    const from = this.#memory.in(source);
    const units = Math.ceil(width / 16);
    const size = source.length;
    this.#memory.run(
      "scatterAddRows",
      units,
      size,
      this.#memory.into(table),
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
    const from = this.#memory.in(x);
    const scale = this.#memory.in(weight);
    const to = this.#memory.out(out);
    const kept = this.#memory.out(inverseRms);
    this.#memory.run(
      "rmsNorm",
      rows,
      x.length * 4,
      to,
      kept,
      from,
      scale,
      width,
      floatWord(epsilon),
    );
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
    const g = this.#memory.in(gradOut);
    const input = this.#memory.in(x);
    const kept = this.#memory.in(inverseRms);
    const work = x.length * 4;
    // Weight first: gradX may be the buffer of gradOut.
    const sums = this.#memory.into(gradWeight);
    this.#memory.run(
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
    const scale = this.#memory.in(weight);
    const to = this.#memory.into(gradX);
    this.#memory.run("rmsNormBackwardInput", rows, work * 2, to, g, input, kept, scale, width);
  }

  rope(
    x: Tensor,
    positions: IntTensor,
    cosSin: Tensor,
    heads: number,
    headWidth: number,
    inverse: boolean,
  ): void {
    const rows = this.#memory.integers(positions);
    expectLengths("rope", ["x", x.length, rows.length * heads * headWidth]);
    expectIndices("rope", rows, Math.floor(cosSin.length / headWidth));
    const table = this.#memory.in(cosSin);
    const sign = floatWord(inverse ? -1 : 1);
    const work = x.length * 3;
    const to = this.#memory.into(x);
    this.#memory.run("rope", rows.length, work, to, rows.pointer, table, heads, headWidth, sign);
  }

  // --- matrix products ---

  refreshWeight(weight: Tensor, outputs: number, inputs: number): void {
    this.#memory.refreshWeight(weight, outputs, inputs);
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
    const scratch = this.#memory.threadScratch(FIXED_SCRATCH);
    const units = Math.ceil(rows / ROW_BLOCK) * Math.ceil(outputs / 16);
    const work = 2 * rows * outputs * inputs;
    const sizes = [rows, outputs, inputs, ROW_BLOCK, mode] as const;
    this.#memory.run("linear", units, work, out, x, panels, bias, ...sizes, ...scratch);
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
    const panels = this.#memory.packed(weight, outputs, inputs, "rows");
    const from = this.#memory.in(x);
    const offset = bias === undefined ? 0 : this.#memory.in(bias);
    this.#product(this.#memory.out(out), from, panels, offset, rows, outputs, inputs, 0);
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
    const panels = this.#memory.packed(weight, outputs, inputs, "columns");
    const from = this.#memory.in(gradOut);
    // Adding a sum to zeros that were never written is storing it (0 + x = x, but for the sign of a zero sum).
    this.#product(this.#memory.into(gradX), from, panels, 0, rows, inputs, outputs, 1);
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
    const scratch = this.#memory.threadScratch(FIXED_SCRATCH);
    const g = this.#memory.in(gradOut);
    const input = this.#memory.in(x);
    const units = Math.ceil(outputs / 32) * Math.ceil(inputs / 128);
    const work = 2 * rows * outputs * inputs;
    const to = this.#memory.into(gradWeight);
    this.#memory.run(
      "linearBackwardWeight",
      units,
      work,
      to,
      g,
      input,
      rows,
      outputs,
      inputs,
      ...scratch,
    );
    if (gradBias !== undefined) {
      const sums = this.#memory.into(gradBias);
      this.#memory.run(
        "columnSums",
        Math.ceil(outputs / 16),
        gradOut.length,
        sums,
        g,
        rows,
        outputs,
      );
    }
  }

  // --- attention ---

  writeCache(cache: KeyValueCache, keys: Tensor, values: Tensor, slots: IntTensor): void {
    writeCache(this.#memory, cache, keys, values, slots);
  }

  attention(
    out: Tensor,
    logSumExp: Tensor,
    queries: Tensor,
    cache: KeyValueCache,
    plan: AttentionPlan,
    shape: AttentionShape,
  ): void {
    attention(this.#memory, out, logSumExp, queries, cache, plan, shape);
  }

  attentionBackward(...[gradQueries, ...rest]: Parameters<Backend["attentionBackward"]>): void {
    attentionBackward(this.#memory, gradQueries, ...rest);
  }

  // --- elementwise ---

  swiglu(out: Tensor, gate: Tensor, up: Tensor): void {
    const n = out.length;
    expectLengths("swiglu", ["gate", gate.length, n], ["up", up.length, n]);
    const inputs = [this.#memory.in(gate), this.#memory.in(up)];
    this.#memory.elementwise("swiglu", n, 12, this.#memory.out(out), inputs);
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
    const rest = [gradUp, gradOut, gate, up].map((t) => this.#memory.in(t));
    this.#memory.elementwise("swigluBackward", n, 16, this.#memory.into(gradGate), rest);
  }

  addScaled(target: Tensor, source: Tensor, scale: number): void {
    expectLengths("addScaled", ["source", source.length, target.length]);
    const rest = [this.#memory.in(source), floatWord(scale)];
    this.#memory.elementwise("addScaled", target.length, 2, this.#memory.into(target), rest);
  }

  // --- log-probabilities ---

  logSumExp(out: Tensor, logits: Tensor, vocabulary: number, temperature: number): void {
    logSumExp(this.#memory, out, logits, vocabulary, temperature);
  }

  gatherLogprobs(...[out, ...rest]: Parameters<Backend["gatherLogprobs"]>): void {
    gatherLogprobs(this.#memory, out, ...rest);
  }

  logprobsBackward(...[gradLogits, ...rest]: Parameters<Backend["logprobsBackward"]>): void {
    logprobsBackward(this.#memory, gradLogits, ...rest);
  }

  async sample(...[ids, ...rest]: Parameters<Backend["sample"]>): Promise<void> {
    sample(this.#memory, ids, ...rest);
  }

  // --- optimiser ---

  addSumOfSquares(out: Tensor, x: Tensor): void {
    const blocks = Math.ceil(x.length / FLOAT_BLOCK);
    this.#memory.withBytes([blocks * 8 + 8], ([pointer]) => {
      this.#memory.elementwise("sumOfSquares", x.length, 4, pointer, [this.#memory.in(x)]);
      const first = this.#memory.into(out) >>> 2;
      // Partial sums of 1024 floats each, cut at fixed indices and added in order.
      const partials = new Float64Array(this.#pool.memory.buffer, pointer >>> 0, blocks);
      let sum = 0;
      for (const partial of partials) sum += partial;
      this.#memory.views().floats[first] += sum;
    });
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
    const buffers = [gradient, firstMoment, secondMoment].map((t) => this.#memory.in(t));
    this.#memory.elementwise("adamW", n, 20, this.#memory.into(weight), [...buffers, ...scalars]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#pool.end();
  }
}
