/**
 * From logits to log-probabilities, their gradient, and samples.
 *
 * Law: one formula, logits / temperature - logSumExp, with one row reduction (`rowLogSumExp`), in sampling and
 * training, so the two log-probabilities of a token are equal bit for bit.
 */
import { argument, fillFloats, pointer, scalar } from "./memory";
import { exp4, loadRow, rowLogSumExp, scaledMax } from "./math";

/** args: out, logits, vocabulary, temperature. Unit: one row. */
export function logSumExp(a: usize, start: i32, end: i32): void {
  const V = argument(a, 2);
  for (let r = start; r < end; r++) {
    const row = pointer(a, 1) + ((<usize>r * <usize>V) << 2);
    store<f32>(pointer(a, 0) + (<usize>r << 2), rowLogSumExp(row, V, scalar(a, 3)));
  }
}

// @ts-ignore: decorator
@inline
function logprob(row: usize, target: i32, lse: f32, temperature: f32): f32 {
  return load<f32>(row + (<usize>target << 2)) / temperature - lse;
}

/** args: out, logits, logSumExp, rows, targets, vocabulary, temperature. Unit: one term. */
export function gatherLogprobs(a: usize, start: i32, end: i32): void {
  const V = argument(a, 5);
  const temperature = scalar(a, 6);
  for (let t = start; t < end; t++) {
    const r = load<i32>(pointer(a, 3) + (<usize>t << 2));
    const target = load<i32>(pointer(a, 4) + (<usize>t << 2));
    const row = pointer(a, 1) + ((<usize>r * <usize>V) << 2);
    const lse = load<f32>(pointer(a, 2) + (<usize>r << 2));
    store<f32>(pointer(a, 0) + (<usize>t << 2), logprob(row, target, lse, temperature));
  }
}

/**
 * args: gradLogits, gradLogprobs, logits, logSumExp, offsets, order, targets, vocabulary, temperature.
 * `order` lists the terms by row, each row's in order; row r has order[offsets[r]] .. order[offsets[r + 1]].
 * Unit: one row.
 */
export function logprobsBackward(a: usize, start: i32, end: i32): void {
  const V = argument(a, 7);
  const temperature = scalar(a, 8);
  const t4 = f32x4.splat(temperature);
  for (let r = start; r < end; r++) {
    const o = (<usize>r * <usize>V) << 2;
    const grad = pointer(a, 0) + o;
    const row = pointer(a, 2) + o;
    const first = load<i32>(pointer(a, 4) + (<usize>r << 2));
    const last = load<i32>(pointer(a, 4) + (<usize>r << 2), 4);
    if (first == last) {
      fillFloats(grad, 0, V);
      continue;
    }
    let total: f32 = 0;
    for (let i = first; i < last; i++) {
      const t = load<i32>(pointer(a, 5) + (<usize>i << 2));
      total += load<f32>(pointer(a, 1) + (<usize>t << 2));
    }
    const lse = f32x4.splat(load<f32>(pointer(a, 3) + (<usize>r << 2)));
    const pull = f32x4.splat(-total / temperature);
    let i = 0;
    for (; i + 4 <= V; i += 4) {
      const p = exp4(f32x4.sub(f32x4.div(v128.load(row + (<usize>i << 2)), t4), lse));
      v128.store(grad + (<usize>i << 2), f32x4.mul(pull, p));
    }
    if (i < V) {
      const p = exp4(f32x4.sub(f32x4.div(loadRow(row, i, V), t4), lse));
      const g = f32x4.mul(pull, p);
      // Lane by lane: the words behind are the next row's, which another thread may be writing.
      const d = grad + (<usize>i << 2);
      store<f32>(d, f32x4.extract_lane(g, 0));
      if (i + 1 < V) store<f32>(d, f32x4.extract_lane(g, 1), 4);
      if (i + 2 < V) store<f32>(d, f32x4.extract_lane(g, 2), 8);
    }
    for (let k = first; k < last; k++) {
      const t = load<i32>(pointer(a, 5) + (<usize>k << 2));
      const target = load<i32>(pointer(a, 6) + (<usize>t << 2));
      const d = grad + (<usize>target << 2);
      store<f32>(d, load<f32>(d) + load<f32>(pointer(a, 1) + (<usize>t << 2)) / temperature);
    }
  }
}

/**
 * args: ids, logprobs, logits, uniforms, vocabulary, temperature (0: first maximum, log-probability at temperature 1).
 * The cumulative probability is summed in f64 over ids in order. Unit: one row.
 */
export function sample(a: usize, start: i32, end: i32): void {
  const V = argument(a, 4);
  const asked = scalar(a, 5);
  const temperature: f32 = asked == 0 ? 1 : asked;
  for (let r = start; r < end; r++) {
    const row = pointer(a, 2) + ((<usize>r * <usize>V) << 2);
    const lse = rowLogSumExp(row, V, temperature);
    let id = -1;
    if (asked == 0) {
      const top = scaledMax(row, V, 1);
      for (let i = 0; i < V; i++) {
        if (load<f32>(row + (<usize>i << 2)) == top) {
          id = i;
          break;
        }
      }
    } else {
      const uniform = <f64>load<f32>(pointer(a, 3) + (<usize>r << 2));
      id = inverseTransform(row, V, temperature, lse, uniform);
    }
    store<i32>(pointer(a, 0) + (<usize>r << 2), id);
    const value: f32 = id < 0 ? NaN : logprob(row, id, lse, temperature);
    store<f32>(pointer(a, 1) + (<usize>r << 2), value);
  }
}

/** First id whose cumulative probability exceeds the uniform; the last possible id when rounding leaves a gap. */
function inverseTransform(row: usize, V: i32, temperature: f32, lse: f32, uniform: f64): i32 {
  const t4 = f32x4.splat(temperature);
  const l4 = f32x4.splat(lse);
  let sum: f64 = 0;
  let possible = -1;
  for (let i = 0; i < V; i += 4) {
    const p = exp4(f32x4.sub(f32x4.div(loadRow(row, i, V), t4), l4));
    const p0 = f32x4.extract_lane(p, 0);
    const p1 = f32x4.extract_lane(p, 1);
    const p2 = f32x4.extract_lane(p, 2);
    const p3 = f32x4.extract_lane(p, 3);
    sum += p0;
    if (sum > uniform) return i;
    sum += p1;
    if (sum > uniform) return i + 1;
    sum += p2;
    if (sum > uniform) return i + 2;
    sum += p3;
    if (sum > uniform) return i + 3;
    if (p0 > 0) possible = i;
    if (p1 > 0) possible = i + 1;
    if (p2 > 0) possible = i + 2;
    if (p3 > 0) possible = i + 3;
  }
  return possible;
}
