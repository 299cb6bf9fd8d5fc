/**
 * One transformer layer, forward and backward by hand over the Backend port.
 *
 *   n = rmsNorm(x); q, k, v = n Wq, n Wk, n Wv; q, k = rope(headNorm(q)), rope(headNorm(k))
 *   m = x + attention(q, k, v) Wo;  out = m + (silu(rmsNorm(m) Wg) * (rmsNorm(m) Wu)) Wd
 *
 * Keys and values exist for all R rows; everything after them only for the U query rows (all of them, or in the last
 * layer those whose output is used). Shapes: R rows, U query rows, D width, H, G, E heads, I intermediate width.
 * Law: what backward needs and cannot cheaply recompute is kept; norms and SwiGLU outputs are recomputed.
 */
import type {
  AttentionPlan,
  AttentionShape,
  Backend,
  IntTensor,
  KeyValueCache,
  Tensor,
} from "../backend.js";
import type { ModelConfig } from "../policy.js";
import { gradientOf, type LayerParameters, type Parameter } from "./parameters.js";
import type { Workspace } from "./workspace.js";

/** Where the layers run. */
export interface LayerContext {
  readonly backend: Backend;
  readonly workspace: Workspace;
  readonly config: ModelConfig;
}

/** All rows of a pass. */
export interface KeyRows {
  readonly count: number;
  readonly positions: IntTensor;
  readonly slots: IntTensor;
  readonly cosSin: Tensor;
}

/** The rows whose output is wanted. `indices` null = all rows, in order. */
export interface QueryRows {
  readonly count: number;
  readonly indices: IntTensor | null;
  readonly positions: IntTensor;
  readonly plan: AttentionPlan;
}

/** What backward needs of a layer. `x` [R, D] is the layer's input. */
export interface LayerActivations {
  readonly x: Tensor;
  readonly inverseInput: Tensor;
  /** Query and key before the head norm, and its inverse rms; null without head norms. */
  readonly queryNorm: { readonly before: Tensor; readonly inverse: Tensor } | null;
  readonly keyNorm: { readonly before: Tensor; readonly inverse: Tensor } | null;
  readonly queries: Tensor;
  readonly cache: KeyValueCache;
  readonly attended: Tensor;
  readonly logSumExp: Tensor;
  readonly middle: Tensor;
  readonly inverseMiddle: Tensor;
  readonly gate: Tensor;
  readonly up: Tensor;
}

/** The head geometry of a model. */
export function attentionShapeOf(config: ModelConfig): AttentionShape {
  const { heads, keyValueHeads, headWidth } = config;
  return { heads, keyValueHeads, headWidth };
}

function project({ backend, workspace }: LayerContext, weight: Parameter, x: Tensor): Tensor {
  const [outputs, inputs] = weight.spec.shape;
  const out = workspace.take((x.length / inputs) * outputs);
  backend.linear(out, x, weight.weight, outputs, inputs);
  return out;
}

/** gradX += gradOut W and dW += gradOut^T x. */
export function projectBackward(
  { backend }: Pick<LayerContext, "backend">,
  weight: Parameter,
  gradX: Tensor,
  gradOut: Tensor,
  x: Tensor,
): void {
  const [outputs, inputs] = weight.spec.shape;
  backend.linearBackwardInput(gradX, gradOut, weight.weight, outputs, inputs);
  backend.linearBackwardWeight(gradientOf(backend, weight), gradOut, x, outputs, inputs);
}

function gather({ backend, workspace }: LayerContext, x: Tensor, query: QueryRows, width: number) {
  if (query.indices === null) return x;
  const out = workspace.take(query.count * width);
  backend.gatherRows(out, x, query.indices, width);
  return out;
}

/** Head norm (if any) and rotary embedding. Returns the rotated tensor and what the norm's backward needs. */
function rotate(
  { backend, workspace, config }: LayerContext,
  before: Tensor,
  norm: Parameter | null,
  heads: number,
  positions: IntTensor,
  cosSin: Tensor,
): { readonly rotated: Tensor; readonly saved: LayerActivations["queryNorm"] } {
  const { headWidth, normEpsilon } = config;
  let rotated = before;
  let saved: LayerActivations["queryNorm"] = null;
  if (norm !== null) {
    const inverse = workspace.take(before.length / headWidth);
    rotated = workspace.take(before.length);
    backend.rmsNorm(rotated, inverse, before, norm.weight, headWidth, normEpsilon);
    saved = { before, inverse };
  }
  backend.rope(rotated, positions, cosSin, heads, headWidth, false);
  return { rotated, saved };
}

/**
 * Runs a layer, storing keys and values in `cache`.
 * @param x - [R, D]; stays the caller's.
 * @returns `out` [U, D], the caller's, and the activations, which `giveActivations` returns to the workspace.
 */
export function forwardLayer(
  context: LayerContext,
  layer: LayerParameters,
  x: Tensor,
  cache: KeyValueCache,
  rows: KeyRows,
  query: QueryRows,
): { readonly out: Tensor; readonly activations: LayerActivations } {
  const { backend, workspace, config } = context;
  const { width, heads, keyValueHeads, normEpsilon } = config;
  const inverseInput = workspace.take(rows.count);
  const normed = workspace.take(rows.count * width);
  backend.rmsNorm(normed, inverseInput, x, layer.inputNorm.weight, width, normEpsilon);

  const values = project(context, layer.value, normed);
  const key = rotate(
    context,
    project(context, layer.key, normed),
    layer.keyNorm,
    keyValueHeads,
    rows.positions,
    rows.cosSin,
  );
  backend.writeCache(cache, key.rotated, values, rows.slots);
  workspace.give(values, key.rotated);

  const queryInput = gather(context, normed, query, width);
  const { rotated: queries, saved: queryNorm } = rotate(
    context,
    project(context, layer.query, queryInput),
    layer.queryNorm,
    heads,
    query.positions,
    rows.cosSin,
  );
  if (queryInput !== normed) workspace.give(queryInput);
  workspace.give(normed);

  const attended = workspace.take(queries.length);
  const logSumExp = workspace.take(query.count * heads);
  backend.attention(attended, logSumExp, queries, cache, query.plan, attentionShapeOf(config));

  const middle = project(context, layer.output, attended);
  const residual = gather(context, x, query, width);
  backend.addScaled(middle, residual, 1);
  if (residual !== x) workspace.give(residual);

  const inverseMiddle = workspace.take(query.count);
  const middleNormed = workspace.take(middle.length);
  backend.rmsNorm(middleNormed, inverseMiddle, middle, layer.middleNorm.weight, width, normEpsilon);
  const gate = project(context, layer.gate, middleNormed);
  const up = project(context, layer.up, middleNormed);
  workspace.give(middleNormed);
  const gated = workspace.take(gate.length);
  backend.swiglu(gated, gate, up);
  const out = project(context, layer.down, gated);
  workspace.give(gated);
  backend.addScaled(out, middle, 1);
  return {
    out,
    activations: {
      x,
      inverseInput,
      queryNorm,
      keyNorm: key.saved,
      queries,
      cache,
      attended,
      logSumExp,
      middle,
      inverseMiddle,
      gate,
      up,
    },
  };
}

/** Returns a layer's activations to the workspace, without `x` and the cache. */
export function giveActivations(workspace: Workspace, kept: LayerActivations): void {
  workspace.give(kept.inverseInput, kept.queries, kept.attended, kept.logSumExp);
  workspace.give(kept.middle, kept.inverseMiddle, kept.gate, kept.up);
  for (const norm of [kept.queryNorm, kept.keyNorm])
    if (norm !== null) workspace.give(norm.before, norm.inverse);
}

/** From d(out) to d(middle), in place over `gradOut` [U, D]. */
function backwardFeedForward(
  context: LayerContext,
  layer: LayerParameters,
  kept: LayerActivations,
  gradOut: Tensor,
): void {
  const { backend, workspace, config } = context;
  const { width, normEpsilon } = config;
  const { gate, up, middle, inverseMiddle } = kept;
  const gated = workspace.take(gate.length);
  backend.swiglu(gated, gate, up);
  const gradGated = workspace.takeZeros(gate.length);
  projectBackward(context, layer.down, gradGated, gradOut, gated);
  workspace.give(gated);

  const gradGate = workspace.takeZeros(gate.length);
  const gradUp = workspace.takeZeros(up.length);
  backend.swigluBackward(gradGate, gradUp, gradGated, gate, up);
  workspace.give(gradGated);

  const middleNormed = workspace.take(middle.length);
  backend.rmsNorm(middleNormed, inverseMiddle, middle, layer.middleNorm.weight, width, normEpsilon);
  const gradNormed = workspace.takeZeros(middle.length);
  projectBackward(context, layer.gate, gradNormed, gradGate, middleNormed);
  projectBackward(context, layer.up, gradNormed, gradUp, middleNormed);
  workspace.give(gradGate, gradUp, middleNormed);
  backend.rmsNormBackward(
    gradOut,
    gradientOf(backend, layer.middleNorm),
    gradNormed,
    middle,
    inverseMiddle,
    layer.middleNorm.weight,
    width,
  );
  workspace.give(gradNormed);
}

/** Undoes rope and head norm on a gradient; returns d(projection), which may be the same buffer. */
function rotateBackward(
  { backend, workspace, config }: LayerContext,
  gradRotated: Tensor,
  norm: Parameter | null,
  saved: LayerActivations["queryNorm"],
  heads: number,
  positions: IntTensor,
  cosSin: Tensor,
): Tensor {
  const { headWidth } = config;
  backend.rope(gradRotated, positions, cosSin, heads, headWidth, true);
  if (norm === null || saved === null) return gradRotated;
  const gradBefore = workspace.takeZeros(gradRotated.length);
  backend.rmsNormBackward(
    gradBefore,
    gradientOf(backend, norm),
    gradRotated,
    saved.before,
    saved.inverse,
    norm.weight,
    headWidth,
  );
  workspace.give(gradRotated);
  return gradBefore;
}

/**
 * Backward of `forwardLayer`: adds to the parameters' gradients.
 * @param gradOut - [U, D]; taken over.
 * @returns d(x), [R, D]; the caller's.
 */
export function backwardLayer(
  context: LayerContext,
  layer: LayerParameters,
  kept: LayerActivations,
  rows: KeyRows,
  query: QueryRows,
  gradOut: Tensor,
): Tensor {
  const { backend, workspace, config } = context;
  const { width, heads, keyValueHeads, headWidth, normEpsilon } = config;
  backwardFeedForward(context, layer, kept, gradOut);
  const gradMiddle = gradOut;

  const gradAttended = workspace.takeZeros(kept.attended.length);
  projectBackward(context, layer.output, gradAttended, gradMiddle, kept.attended);
  const gradQueries = workspace.takeZeros(kept.queries.length);
  const gradKeys = workspace.takeZeros(kept.cache.slots * keyValueHeads * headWidth);
  const gradValues = workspace.takeZeros(gradKeys.length);
  backend.attentionBackward(
    gradQueries,
    gradKeys,
    gradValues,
    gradAttended,
    kept.attended,
    kept.logSumExp,
    kept.queries,
    kept.cache,
    query.plan,
    attentionShapeOf(config),
  );
  workspace.give(gradAttended);

  const normed = workspace.take(kept.x.length);
  const inverse = workspace.take(rows.count);
  backend.rmsNorm(normed, inverse, kept.x, layer.inputNorm.weight, width, normEpsilon);
  workspace.give(inverse);
  const gradNormed = workspace.takeZeros(kept.x.length);
  projectBackward(context, layer.value, gradNormed, gradValues, normed);
  const gradKey = rotateBackward(
    context,
    gradKeys,
    layer.keyNorm,
    kept.keyNorm,
    keyValueHeads,
    rows.positions,
    rows.cosSin,
  );
  projectBackward(context, layer.key, gradNormed, gradKey, normed);
  workspace.give(gradValues, gradKey);
  const gradQuery = rotateBackward(
    context,
    gradQueries,
    layer.queryNorm,
    kept.queryNorm,
    heads,
    query.positions,
    rows.cosSin,
  );
  let gradX = gradMiddle;
  if (query.indices === null) {
    projectBackward(context, layer.query, gradNormed, gradQuery, normed);
  } else {
    const queryInput = gather(context, normed, query, width);
    const gradInput = workspace.takeZeros(queryInput.length);
    projectBackward(context, layer.query, gradInput, gradQuery, queryInput);
    backend.scatterAddRows(gradNormed, gradInput, query.indices, width);
    gradX = workspace.takeZeros(kept.x.length);
    backend.scatterAddRows(gradX, gradMiddle, query.indices, width);
    workspace.give(queryInput, gradInput, gradMiddle);
  }
  workspace.give(gradQuery, normed);
  backend.rmsNormBackward(
    gradX,
    gradientOf(backend, layer.inputNorm),
    gradNormed,
    kept.x,
    kept.inverseInput,
    layer.inputNorm.weight,
    width,
  );
  workspace.give(gradNormed);
  return gradX;
}
