/**
 * The reference backend: the specification of the Backend port in plain TypeScript.
 *
 * Law: storage is f32, sums are sequential in f64 in the order the port states, and every buffer length is checked.
 * It is meant to be read and tested against, not to be fast.
 */
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
import { attentionBackwardKernel, attentionKernel } from "./attention-kernel.js";
import {
  cacheOf,
  changedFloatsOf,
  expectLengths,
  floatsOf,
  intsOf,
  ReferenceCache,
  ReferenceIntTensor,
  ReferenceTensor,
  weightOf,
} from "./buffers.js";
import {
  linearBackwardInputKernel,
  linearBackwardWeightKernel,
  linearKernel,
} from "./linear-kernel.js";
import {
  gatherLogprobsKernel,
  logprobsBackwardKernel,
  logSumExpKernel,
  sampleKernel,
} from "./logprob-kernel.js";
import { rmsNormBackwardKernel, rmsNormKernel } from "./norm-kernel.js";
import { adamWKernel, addSumOfSquaresKernel } from "./optimiser-kernel.js";
import {
  gatherRowsKernel,
  ropeKernel,
  scatterAddRowsKernel,
  swigluBackwardKernel,
  swigluKernel,
  writeRowsKernel,
} from "./row-kernel.js";

class ReferenceBackend implements Backend {
  readonly info: BackendInfo = { id: "reference", variant: "f64-sums", threads: 1 };

  allocate(length: number): Tensor {
    return new ReferenceTensor(length);
  }

  allocateInts(values: Int32Array): IntTensor {
    return new ReferenceIntTensor(values);
  }

  allocateCache(slots: number, shape: AttentionShape): KeyValueCache {
    return new ReferenceCache(slots, shape);
  }

  free(buffer: Tensor | IntTensor | KeyValueCache): void {
    if (buffer instanceof ReferenceCache) {
      buffer.keys = null;
      buffer.values = null;
    } else if (buffer instanceof ReferenceTensor || buffer instanceof ReferenceIntTensor) {
      buffer.data = null;
    }
  }

  write(target: Tensor, values: Float32Array, offset = 0): void {
    changedFloatsOf(target).set(values, offset);
  }

  read(source: Tensor, offset = 0, length: number = source.length - offset): Promise<Float32Array> {
    return Promise.resolve(floatsOf(source).slice(offset, offset + length));
  }

  fill(target: Tensor, value: number): void {
    changedFloatsOf(target).fill(value);
  }

  copy(target: Tensor, source: Tensor): void {
    expectLengths("copy", ["source", source.length, target.length]);
    changedFloatsOf(target).set(floatsOf(source));
  }

  embed(out: Tensor, table: Tensor, ids: IntTensor, width: number): void {
    this.gatherRows(out, table, ids, width);
  }

  embedBackward(gradTable: Tensor, gradOut: Tensor, ids: IntTensor, width: number): void {
    this.scatterAddRows(gradTable, gradOut, ids, width);
  }

  gatherRows(out: Tensor, source: Tensor, indices: IntTensor, width: number): void {
    expectLengths("gatherRows", ["out", out.length, indices.length * width]);
    gatherRowsKernel(floatsOf(out), floatsOf(source), intsOf(indices), width);
  }

  scatterAddRows(target: Tensor, source: Tensor, indices: IntTensor, width: number): void {
    expectLengths("scatterAddRows", ["source", source.length, indices.length * width]);
    scatterAddRowsKernel(floatsOf(target), floatsOf(source), intsOf(indices), width);
  }

  rmsNorm(
    out: Tensor,
    inverseRms: Tensor,
    x: Tensor,
    weight: Tensor,
    width: number,
    epsilon: number,
  ): void {
    expectLengths(
      "rmsNorm",
      ["out", out.length, x.length],
      ["inverseRms", inverseRms.length * width, x.length],
      ["weight", weight.length, width],
    );
    rmsNormKernel(
      floatsOf(out),
      floatsOf(inverseRms),
      floatsOf(x),
      floatsOf(weight),
      width,
      epsilon,
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
    expectLengths(
      "rmsNormBackward",
      ["gradX", gradX.length, x.length],
      ["gradWeight", gradWeight.length, width],
      ["gradOut", gradOut.length, x.length],
      ["inverseRms", inverseRms.length * width, x.length],
      ["weight", weight.length, width],
    );
    rmsNormBackwardKernel(
      floatsOf(gradX),
      floatsOf(gradWeight),
      floatsOf(gradOut),
      floatsOf(x),
      floatsOf(inverseRms),
      floatsOf(weight),
      width,
    );
  }

  refreshWeight(weight: Tensor, outputs: number, inputs: number): void {
    expectLengths("refreshWeight", ["weight", weight.length, outputs * inputs]);
    if (weight instanceof ReferenceTensor) weight.refreshed = true;
  }

  linear(
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    outputs: number,
    inputs: number,
    bias?: Tensor,
  ): void {
    expectLengths(
      "linear",
      ["weight", weight.length, outputs * inputs],
      ["out", out.length * inputs, x.length * outputs],
      ["bias", bias?.length ?? outputs, outputs],
    );
    linearKernel(
      floatsOf(out),
      floatsOf(x),
      weightOf(weight),
      outputs,
      inputs,
      bias === undefined ? null : floatsOf(bias),
    );
  }

  linearBackwardInput(
    gradX: Tensor,
    gradOut: Tensor,
    weight: Tensor,
    outputs: number,
    inputs: number,
  ): void {
    expectLengths(
      "linearBackwardInput",
      ["weight", weight.length, outputs * inputs],
      ["gradOut", gradOut.length * inputs, gradX.length * outputs],
    );
    linearBackwardInputKernel(
      floatsOf(gradX),
      floatsOf(gradOut),
      weightOf(weight),
      outputs,
      inputs,
    );
  }

  linearBackwardWeight(
    gradWeight: Tensor,
    gradOut: Tensor,
    x: Tensor,
    outputs: number,
    inputs: number,
    gradBias?: Tensor,
  ): void {
    expectLengths(
      "linearBackwardWeight",
      ["gradWeight", gradWeight.length, outputs * inputs],
      ["gradOut", gradOut.length * inputs, x.length * outputs],
      ["gradBias", gradBias?.length ?? outputs, outputs],
    );
    linearBackwardWeightKernel(
      floatsOf(gradWeight),
      floatsOf(gradOut),
      floatsOf(x),
      outputs,
      inputs,
      gradBias === undefined ? null : floatsOf(gradBias),
    );
  }

  rope(
    x: Tensor,
    positions: IntTensor,
    cosSin: Tensor,
    heads: number,
    headWidth: number,
    inverse: boolean,
  ): void {
    expectLengths("rope", ["x", x.length, positions.length * heads * headWidth]);
    ropeKernel(floatsOf(x), intsOf(positions), floatsOf(cosSin), heads, headWidth, inverse);
  }

  writeCache(cache: KeyValueCache, keys: Tensor, values: Tensor, slots: IntTensor): void {
    expectLengths("writeCache", ["values", values.length, keys.length]);
    const stored = cacheOf(cache);
    const width = slots.length === 0 ? 0 : keys.length / slots.length;
    if (width > 0) expectLengths("writeCache", ["cache", stored.keys.length, cache.slots * width]);
    writeRowsKernel(stored.keys, floatsOf(keys), intsOf(slots), width);
    writeRowsKernel(stored.values, floatsOf(values), intsOf(slots), width);
  }

  attention(
    out: Tensor,
    logSumExp: Tensor,
    queries: Tensor,
    cache: KeyValueCache,
    plan: AttentionPlan,
    shape: AttentionShape,
  ): void {
    expectLengths(
      "attention",
      ["out", out.length, queries.length],
      ["logSumExp", logSumExp.length * shape.headWidth, queries.length],
      ["spanOffsets", plan.spanOffsets.length, plan.rowStarts.length + 1],
    );
    const { keys, values } = cacheOf(cache);
    attentionKernel(
      floatsOf(out),
      floatsOf(logSumExp),
      floatsOf(queries),
      keys,
      values,
      plan,
      shape,
    );
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
    const { keys, values } = cacheOf(cache);
    expectLengths(
      "attentionBackward",
      ["gradQueries", gradQueries.length, queries.length],
      ["gradKeys", gradKeys.length, keys.length],
      ["gradValues", gradValues.length, values.length],
      ["gradOut", gradOut.length, queries.length],
      ["out", out.length, queries.length],
      ["logSumExp", logSumExp.length * shape.headWidth, queries.length],
    );
    attentionBackwardKernel(
      floatsOf(gradQueries),
      floatsOf(gradKeys),
      floatsOf(gradValues),
      floatsOf(gradOut),
      floatsOf(out),
      floatsOf(logSumExp),
      floatsOf(queries),
      keys,
      values,
      plan,
      shape,
    );
  }

  swiglu(out: Tensor, gate: Tensor, up: Tensor): void {
    expectLengths("swiglu", ["gate", gate.length, out.length], ["up", up.length, out.length]);
    swigluKernel(floatsOf(out), floatsOf(gate), floatsOf(up));
  }

  swigluBackward(
    gradGate: Tensor,
    gradUp: Tensor,
    gradOut: Tensor,
    gate: Tensor,
    up: Tensor,
  ): void {
    expectLengths(
      "swigluBackward",
      ["gradGate", gradGate.length, gradOut.length],
      ["gradUp", gradUp.length, gradOut.length],
      ["gate", gate.length, gradOut.length],
      ["up", up.length, gradOut.length],
    );
    swigluBackwardKernel(
      floatsOf(gradGate),
      floatsOf(gradUp),
      floatsOf(gradOut),
      floatsOf(gate),
      floatsOf(up),
    );
  }

  addScaled(target: Tensor, source: Tensor, scale: number): void {
    expectLengths("addScaled", ["source", source.length, target.length]);
    const [to, from] = [changedFloatsOf(target), floatsOf(source)];
    for (let i = 0; i < to.length; i += 1) to[i] += scale * from[i];
  }

  logSumExp(out: Tensor, logits: Tensor, vocabulary: number, temperature: number): void {
    expectLengths("logSumExp", ["logits", logits.length, out.length * vocabulary]);
    logSumExpKernel(floatsOf(out), floatsOf(logits), vocabulary, temperature);
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
    expectLengths(
      "gatherLogprobs",
      ["logits", logits.length, logSumExp.length * vocabulary],
      ["rows", rows.length, out.length],
      ["targets", targets.length, out.length],
    );
    gatherLogprobsKernel(
      floatsOf(out),
      floatsOf(logits),
      floatsOf(logSumExp),
      intsOf(rows),
      intsOf(targets),
      vocabulary,
      temperature,
    );
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
    expectLengths(
      "logprobsBackward",
      ["gradLogits", gradLogits.length, logits.length],
      ["logits", logits.length, logSumExp.length * vocabulary],
      ["rows", rows.length, gradLogprobs.length],
      ["targets", targets.length, gradLogprobs.length],
    );
    logprobsBackwardKernel(
      floatsOf(gradLogits),
      floatsOf(gradLogprobs),
      floatsOf(logits),
      floatsOf(logSumExp),
      intsOf(rows),
      intsOf(targets),
      vocabulary,
      temperature,
    );
  }

  sample(
    ids: Int32Array,
    logprobs: Float32Array,
    logits: Tensor,
    uniforms: Float32Array,
    vocabulary: number,
    temperature: number,
  ): Promise<void> {
    expectLengths(
      "sample",
      ["logits", logits.length, ids.length * vocabulary],
      ["logprobs", logprobs.length, ids.length],
      ["uniforms", uniforms.length, ids.length],
    );
    sampleKernel(ids, logprobs, floatsOf(logits), uniforms, vocabulary, temperature);
    return Promise.resolve();
  }

  addSumOfSquares(out: Tensor, x: Tensor): void {
    addSumOfSquaresKernel(floatsOf(out), floatsOf(x));
  }

  adamW(
    weight: Tensor,
    gradient: Tensor,
    firstMoment: Tensor,
    secondMoment: Tensor,
    options: AdamWOptions,
  ): void {
    expectLengths(
      "adamW",
      ["gradient", gradient.length, weight.length],
      ["firstMoment", firstMoment.length, weight.length],
      ["secondMoment", secondMoment.length, weight.length],
    );
    adamWKernel(
      changedFloatsOf(weight),
      floatsOf(gradient),
      floatsOf(firstMoment),
      floatsOf(secondMoment),
      options,
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

/** Creates the reference backend: single-threaded, plain TypeScript, works anywhere. */
export function createReferenceBackend(): Backend {
  return new ReferenceBackend();
}
