/**
 * The formulas of the operations in f64, written as plainly as possible and independently of any backend.
 * They take and return f64 arrays, so that finite differences of them are accurate.
 */
import type { AttentionPlan, AttentionShape } from "../backend.js";

/** x[R,K] weight[N,K]^T (+ bias[N]). */
export function naiveLinear(
  x: Float64Array,
  weight: Float64Array,
  outputs: number,
  inputs: number,
  bias?: Float64Array,
): Float64Array {
  const rows = x.length / inputs;
  const out = new Float64Array(rows * outputs);
  for (let i = 0; i < out.length; i += 1) {
    const row = Math.floor(i / outputs);
    const output = i % outputs;
    let sum = bias?.[output] ?? 0;
    for (let k = 0; k < inputs; k += 1) sum += x[row * inputs + k] * weight[output * inputs + k];
    out[i] = sum;
  }
  return out;
}

/** x * weight / sqrt(mean(x^2) + epsilon), per row. */
export function naiveRmsNorm(x: Float64Array, weight: Float64Array, epsilon: number): Float64Array {
  const width = weight.length;
  return x.map((value, i) => {
    const row = x.subarray(i - (i % width), i - (i % width) + width);
    const meanSquare = row.reduce((sum, v) => sum + v * v, 0) / width;
    return (value * weight[i % width]) / Math.sqrt(meanSquare + epsilon);
  });
}

/** Rotary embedding of x[R, heads * E] by table rows. */
export function naiveRope(
  x: Float64Array,
  positions: ArrayLike<number>,
  cosSin: ArrayLike<number>,
  heads: number,
  headWidth: number,
): Float64Array {
  const half = headWidth / 2;
  return x.map((value, i) => {
    const within = i % headWidth;
    const row = Math.floor(i / (heads * headWidth));
    const angle = positions[row] * headWidth + (within % half);
    return within < half
      ? value * cosSin[angle] - x[i + half] * cosSin[angle + half]
      : value * cosSin[angle] + x[i - half] * cosSin[angle + half];
  });
}

/** The slots that each row of a plan sees, in order of position. */
export function visibleSlots(plan: AttentionPlan): number[][] {
  const visible: number[][] = [];
  for (let s = 0; s < plan.rowStarts.length; s += 1) {
    const seen: number[] = [];
    for (let a = plan.spanOffsets[s]; a < plan.spanOffsets[s + 1]; a += 1)
      for (let i = 0; i < plan.spanLengths[a]; i += 1) seen.push(plan.spanSlots[a] + i);
    for (let i = 0; i < plan.rowCounts[s]; i += 1) {
      seen.push(plan.selfSlots[s] + i);
      visible[plan.rowStarts[s] + i] = [...seen];
    }
  }
  return visible;
}

/** softmax(q k / sqrt(E)) v over the visible slots of each row. */
export function naiveAttention(
  queries: Float64Array,
  keys: Float64Array,
  values: Float64Array,
  visible: readonly (readonly number[])[],
  { heads, keyValueHeads, headWidth }: AttentionShape,
): { readonly out: Float64Array; readonly logSumExp: Float64Array } {
  const out = new Float64Array(queries.length);
  const logSumExp = new Float64Array(queries.length / headWidth);
  visible.forEach((slots, row) => {
    for (let h = 0; h < heads; h += 1) {
      const query = (row * heads + h) * headWidth;
      const head = Math.floor(h / (heads / keyValueHeads));
      const offset = (slot: number) => (slot * keyValueHeads + head) * headWidth;
      const scores = slots.map((slot) => {
        let sum = 0;
        for (let e = 0; e < headWidth; e += 1) sum += queries[query + e] * keys[offset(slot) + e];
        return sum / Math.sqrt(headWidth);
      });
      const maximum = Math.max(...scores);
      const total = scores.reduce((sum, score) => sum + Math.exp(score - maximum), 0);
      logSumExp[row * heads + h] = maximum + Math.log(total);
      slots.forEach((slot, j) => {
        const probability = Math.exp(scores[j] - maximum) / total;
        for (let e = 0; e < headWidth; e += 1)
          out[query + e] += probability * values[offset(slot) + e];
      });
    }
  });
  return { out, logSumExp };
}

/** silu(gate) * up. */
export function naiveSwiglu(gate: Float64Array, up: Float64Array): Float64Array {
  return gate.map((g, i) => (g / (1 + Math.exp(-g))) * up[i]);
}

/** log softmax(logits / temperature) at one target. */
export function naiveLogprob(logits: Float64Array, target: number, temperature: number): number {
  const scaled = logits.map((logit) => logit / temperature);
  const maximum = scaled.reduce((m, value) => Math.max(m, value), Number.NEGATIVE_INFINITY);
  const total = scaled.reduce((sum, value) => sum + Math.exp(value - maximum), 0);
  return scaled[target] - maximum - Math.log(total);
}

/** Log-probabilities of terms (rows, targets) over logits[R,V]. */
export function naiveLogprobs(
  logits: Float64Array,
  rows: ArrayLike<number>,
  targets: ArrayLike<number>,
  vocabulary: number,
  temperature: number,
): Float64Array {
  return Float64Array.from({ length: rows.length }, (_, t) =>
    naiveLogprob(
      logits.subarray(rows[t] * vocabulary, (rows[t] + 1) * vocabulary),
      targets[t],
      temperature,
    ),
  );
}
