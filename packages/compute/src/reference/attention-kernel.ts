/**
 * Causal grouped-query attention over an AttentionPlan.
 *
 * Law: a row's keys are visited in order of absolute position, first all maxima, then all sums; segment, span and
 * batch borders leave no trace in the result. Query head h reads key/value head floor(h * G / H).
 */
import type { AttentionPlan, AttentionShape } from "../backend.js";

/** Calls `visit` for each row of the plan with the slots it sees, in order of position. */
function forEachRow(
  plan: AttentionPlan,
  visit: (row: number, slots: Int32Array, count: number) => void,
): void {
  for (let s = 0; s < plan.rowStarts.length; s += 1) {
    let ancestors = 0;
    for (let a = plan.spanOffsets[s]; a < plan.spanOffsets[s + 1]; a += 1)
      ancestors += plan.spanLengths[a];
    const slots = new Int32Array(ancestors + plan.rowCounts[s]);
    let count = 0;
    for (let a = plan.spanOffsets[s]; a < plan.spanOffsets[s + 1]; a += 1) {
      for (let i = 0; i < plan.spanLengths[a]; i += 1) slots[count++] = plan.spanSlots[a] + i;
    }
    for (let i = 0; i < plan.rowCounts[s]; i += 1) slots[count++] = plan.selfSlots[s] + i;
    for (let i = 0; i < plan.rowCounts[s]; i += 1)
      visit(plan.rowStarts[s] + i, slots, ancestors + i + 1);
  }
}

function dot(a: Float32Array, offsetA: number, b: Float32Array, offsetB: number, n: number) {
  let sum = 0;
  for (let e = 0; e < n; e += 1) sum += a[offsetA + e] * b[offsetB + e];
  return sum;
}

/** out[R,H*E] = softmax(q k / sqrt(E)) v; logSumExp[R,H] of the scaled scores. */
export function attentionKernel(
  out: Float32Array,
  logSumExp: Float32Array,
  queries: Float32Array,
  keys: Float32Array,
  values: Float32Array,
  plan: AttentionPlan,
  shape: AttentionShape,
): void {
  const { heads, keyValueHeads, headWidth } = shape;
  const scale = 1 / Math.sqrt(headWidth);
  const keyWidth = keyValueHeads * headWidth;
  const mixed = new Float64Array(headWidth);
  forEachRow(plan, (row, slots, count) => {
    const scores = new Float64Array(count);
    for (let h = 0; h < heads; h += 1) {
      const query = (row * heads + h) * headWidth;
      const keyHead = Math.floor((h * keyValueHeads) / heads) * headWidth;
      let maximum = Number.NEGATIVE_INFINITY;
      for (let j = 0; j < count; j += 1) {
        scores[j] = dot(queries, query, keys, slots[j] * keyWidth + keyHead, headWidth) * scale;
        if (scores[j] > maximum) maximum = scores[j];
      }
      let total = 0;
      mixed.fill(0);
      for (let j = 0; j < count; j += 1) {
        const weight = Math.exp(scores[j] - maximum);
        const value = slots[j] * keyWidth + keyHead;
        total += weight;
        for (let e = 0; e < headWidth; e += 1) mixed[e] += weight * values[value + e];
      }
      for (let e = 0; e < headWidth; e += 1) out[query + e] = mixed[e] / total;
      logSumExp[row * heads + h] = maximum + Math.log(total);
    }
  });
}

/**
 * With p = exp(score - logSumExp) and d = gradOut . out, per row in plan order and key in order of position:
 * gradValue += p gradOut; gradScore = p (gradOut . value - d) / sqrt(E); gradQuery += gradScore key;
 * gradKey += gradScore query.
 */
export function attentionBackwardKernel(
  gradQueries: Float32Array,
  gradKeys: Float32Array,
  gradValues: Float32Array,
  gradOut: Float32Array,
  out: Float32Array,
  logSumExp: Float32Array,
  queries: Float32Array,
  keys: Float32Array,
  values: Float32Array,
  plan: AttentionPlan,
  shape: AttentionShape,
): void {
  const { heads, keyValueHeads, headWidth } = shape;
  const scale = 1 / Math.sqrt(headWidth);
  const keyWidth = keyValueHeads * headWidth;
  const keySums = new Float64Array(keys.length);
  const valueSums = new Float64Array(values.length);
  const querySums = new Float64Array(headWidth);
  forEachRow(plan, (row, slots, count) => {
    for (let h = 0; h < heads; h += 1) {
      const query = (row * heads + h) * headWidth;
      const keyHead = Math.floor((h * keyValueHeads) / heads) * headWidth;
      const mean = dot(gradOut, query, out, query, headWidth);
      querySums.fill(0);
      for (let j = 0; j < count; j += 1) {
        const key = slots[j] * keyWidth + keyHead;
        const score = dot(queries, query, keys, key, headWidth) * scale;
        const probability = Math.exp(score - logSumExp[row * heads + h]);
        const gradScore =
          probability * (dot(gradOut, query, values, key, headWidth) - mean) * scale;
        for (let e = 0; e < headWidth; e += 1) {
          valueSums[key + e] += probability * gradOut[query + e];
          keySums[key + e] += gradScore * queries[query + e];
          querySums[e] += gradScore * keys[key + e];
        }
      }
      for (let e = 0; e < headWidth; e += 1) gradQueries[query + e] += querySums[e];
    }
  });
  for (let i = 0; i < keySums.length; i += 1) gradKeys[i] += keySums[i];
  for (let i = 0; i < valueSums.length; i += 1) gradValues[i] += valueSums[i];
}
