/**
 * From logits to log-probabilities, gradients and samples, over the kernels: checks and tables.
 *
 * Law: sampling and training use one row reduction and one formula (assembly/logits.ts).
 */
import { GimbalError } from "@gimbal-rl/core";
import type { IntTensor, Tensor } from "../backend.js";
import { expectLengths } from "../reference/buffers.js";
import { expectIndices } from "./buffers.js";
import { floatWord, type WasmMemory } from "./wasm-memory.js";

/** Temperature 0 (greedy) reports log-probabilities at temperature 1. */
function divisor(temperature: number): number {
  return floatWord(temperature === 0 ? 1 : temperature);
}

function rowsOf(name: string, logits: Tensor, vocabulary: number): number {
  const rows = Math.floor(logits.length / vocabulary);
  expectLengths(name, ["logits", logits.length, rows * vocabulary]);
  return rows;
}

/** Backend.logSumExp. */
export function logSumExp(
  memory: WasmMemory,
  out: Tensor,
  logits: Tensor,
  vocabulary: number,
  temperature: number,
): void {
  const rows = rowsOf("logSumExp", logits, vocabulary);
  expectLengths("logSumExp", ["out", out.length, rows]);
  const from = memory.in(logits);
  const to = memory.out(out);
  memory.run("logSumExp", rows, logits.length * 8, to, from, vocabulary, divisor(temperature));
}

/** Backend.gatherLogprobs. */
export function gatherLogprobs(
  memory: WasmMemory,
  out: Tensor,
  logits: Tensor,
  logSumExp: Tensor,
  rows: IntTensor,
  targets: IntTensor,
  vocabulary: number,
  temperature: number,
): void {
  const count = rowsOf("gatherLogprobs", logits, vocabulary);
  const ownRows = memory.integers(rows);
  const ownTargets = memory.integers(targets);
  const n = out.length;
  expectLengths(
    "gatherLogprobs",
    ["logSumExp", logSumExp.length, count],
    ["rows", rows.length, n],
    ["targets", targets.length, n],
  );
  expectIndices("gatherLogprobs", ownRows, count);
  expectIndices("gatherLogprobs", ownTargets, vocabulary);
  const inputs = [memory.in(logits), memory.in(logSumExp), ownRows.pointer, ownTargets.pointer];
  const to = memory.out(out);
  memory.run("gatherLogprobs", n, n * 8, to, ...inputs, vocabulary, divisor(temperature));
}

/** Backend.logprobsBackward. */
export function logprobsBackward(
  memory: WasmMemory,
  gradLogits: Tensor,
  gradLogprobs: Tensor,
  logits: Tensor,
  logSumExp: Tensor,
  rows: IntTensor,
  targets: IntTensor,
  vocabulary: number,
  temperature: number,
): void {
  const count = rowsOf("logprobsBackward", logits, vocabulary);
  const ownRows = memory.integers(rows);
  const ownTargets = memory.integers(targets);
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
  const list = memory.views().ints.subarray(first, first + rows.length);
  const offsets = new Int32Array(count + 1);
  for (const row of list) offsets[row + 1] += 1;
  for (let r = 0; r < count; r += 1) offsets[r + 1] += offsets[r];
  const next = offsets.slice();
  const order = new Int32Array(rows.length);
  for (let t = 0; t < list.length; t += 1) {
    order[next[list[t]]] = t;
    next[list[t]] += 1;
  }
  memory.withTables([offsets, order], ([offsetsAt, orderAt]) => {
    const inputs = [memory.in(gradLogprobs), memory.in(logits), memory.in(logSumExp)];
    const tables = [offsetsAt, orderAt, ownTargets.pointer];
    const to = memory.out(gradLogits);
    const work = logits.length * 10;
    const t = divisor(temperature);
    memory.run("logprobsBackward", count, work, to, ...inputs, ...tables, vocabulary, t);
  });
}

/** Backend.sample, without waiting. @throws `engine-failed` when a row has no probabilities. */
export function sample(
  memory: WasmMemory,
  ids: Int32Array,
  logprobs: Float32Array,
  logits: Tensor,
  uniforms: Float32Array,
  vocabulary: number,
  temperature: number,
): void {
  const rows = rowsOf("sample", logits, vocabulary);
  expectLengths(
    "sample",
    ["ids", ids.length, rows],
    ["logprobs", logprobs.length, rows],
    ["uniforms", uniforms.length, rows],
  );
  const empty = new Int32Array(rows);
  const uniformWords = new Int32Array(uniforms.buffer, uniforms.byteOffset, rows);
  memory.withTables([empty, empty, uniformWords], ([idsAt, logprobsAt, uniformsAt]) => {
    const from = memory.in(logits);
    const work = logits.length * 10;
    const args = [idsAt, logprobsAt, from, uniformsAt, vocabulary, floatWord(temperature)];
    memory.run("sample", rows, work, ...args);
    const { ints, floats } = memory.views();
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
