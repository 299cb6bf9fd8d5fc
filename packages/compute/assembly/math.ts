/**
 * exp and log of the kernels, and the log-sum-exp of a row.
 *
 * Laws: every lane of `exp4` computes the same value for the same input wherever it stands. Row reductions use
 * sixteen partial results, index i going to i mod 16, combined in one fixed order, so that a row's result depends
 * on the row alone.
 */

const LOWEST: f32 = -87.33654;
const HIGHEST: f32 = 88.37626;
const LOG2E: f32 = 1.44269504088896341;
const LN2_HIGH: f32 = 0.693359375;
const LN2_LOW: f32 = -2.12194440e-4;
/** Adding 1.5 * 2^23 rounds to an integer, which then stands in the low mantissa bits. */
const ROUNDER: f32 = 12582912;

/** e^x of four lanes, about 2 ulp (Cephes expf); 0 below -87.33, clamped above 88.37. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const lowest = f32x4.splat(LOWEST);
  const y = f32x4.pmin(f32x4.pmax(x, lowest), f32x4.splat(HIGHEST));
  const t = f32x4.add(f32x4.mul(y, f32x4.splat(LOG2E)), f32x4.splat(ROUNDER));
  const n = f32x4.sub(t, f32x4.splat(ROUNDER));
  let r = f32x4.sub(y, f32x4.mul(n, f32x4.splat(LN2_HIGH)));
  r = f32x4.sub(r, f32x4.mul(n, f32x4.splat(LN2_LOW)));
  let p = f32x4.splat(1.9875691500e-4);
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.3981999507e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(8.3334519073e-3));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(4.1665795894e-2));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(1.6666665459e-1));
  p = f32x4.add(f32x4.mul(p, r), f32x4.splat(5.0000001201e-1));
  p = f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(p, r), r), r), f32x4.splat(1));
  const power = i32x4.add(i32x4.shl(t, 23), i32x4.splat(0x3f800000));
  return v128.andnot(f32x4.mul(p, power), f32x4.lt(x, lowest));
}

/** Natural logarithm of a positive finite number, rounded to f32 from f64. */
export function log1(x: f32): f32 {
  if (!(x > 0)) return x == 0 ? -Infinity : NaN;
  if (x == Infinity) return x;
  const bits = reinterpret<u64>(<f64>x);
  let exponent = <i32>(bits >> 52) - 1023;
  let m = reinterpret<f64>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    exponent += 1;
  }
  const s = (m - 1) / (m + 1);
  const z = s * s;
  let p: f64 = 1.0 / 15;
  p = p * z + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1;
  return <f32>(2 * s * p + <f64>exponent * 0.6931471805599453);
}

/** Sum of the four lanes in a fixed order. */
// @ts-ignore: decorator
@inline
export function sumLanes(v: v128): f32 {
  return (
    f32x4.extract_lane(v, 0) +
    f32x4.extract_lane(v, 1) +
    (f32x4.extract_lane(v, 2) + f32x4.extract_lane(v, 3))
  );
}

// @ts-ignore: decorator
@inline
export function maxLanes(v: v128): f32 {
  let m = f32x4.extract_lane(v, 0);
  const b = f32x4.extract_lane(v, 1);
  const c = f32x4.extract_lane(v, 2);
  const d = f32x4.extract_lane(v, 3);
  if (b > m) m = b;
  if (c > m) m = c;
  if (d > m) m = d;
  return m;
}

/** Mask of the lanes below `count` (1..4 or more). */
// @ts-ignore: decorator
@inline
export function laneMask(count: i32): v128 {
  return i32x4.lt_s(i32x4(0, 1, 2, 3), i32x4.splat(count));
}

/** Four values from index i of a row of n; lanes past the end hold -Infinity. */
// @ts-ignore: decorator
@inline
export function loadRow(row: usize, i: i32, n: i32): v128 {
  const v = v128.load(row + (<usize>i << 2));
  if (i + 4 <= n) return v;
  return v128.bitselect(v, f32x4.splat(-Infinity), laneMask(n - i));
}

/** Exact maximum of row / temperature. */
export function scaledMax(row: usize, n: i32, temperature: f32): f32 {
  let m0 = f32x4.splat(-Infinity);
  let m1 = m0;
  let i = 0;
  for (; i + 8 <= n; i += 8) {
    m0 = f32x4.pmax(m0, v128.load(row + (<usize>i << 2)));
    m1 = f32x4.pmax(m1, v128.load(row + (<usize>i << 2), 16));
  }
  for (; i < n; i += 4) m0 = f32x4.pmax(m0, loadRow(row, i, n));
  return maxLanes(f32x4.pmax(m0, m1)) / temperature;
}

/** log of the sum of exp(row / temperature). The one code for sampling and training. */
export function rowLogSumExp(row: usize, n: i32, temperature: f32): f32 {
  const top = scaledMax(row, n, temperature);
  const max = f32x4.splat(top);
  const t = f32x4.splat(temperature);
  let s0 = f32x4.splat(0);
  let s1 = s0;
  let s2 = s0;
  let s3 = s0;
  let i = 0;
  for (; i + 16 <= n; i += 16) {
    const p = row + (<usize>i << 2);
    s0 = f32x4.add(s0, exp4(f32x4.sub(f32x4.div(v128.load(p), t), max)));
    s1 = f32x4.add(s1, exp4(f32x4.sub(f32x4.div(v128.load(p, 16), t), max)));
    s2 = f32x4.add(s2, exp4(f32x4.sub(f32x4.div(v128.load(p, 32), t), max)));
    s3 = f32x4.add(s3, exp4(f32x4.sub(f32x4.div(v128.load(p, 48), t), max)));
  }
  if (i < n) s0 = f32x4.add(s0, exp4(f32x4.sub(f32x4.div(loadRow(row, i, n), t), max)));
  if (i + 4 < n) s1 = f32x4.add(s1, exp4(f32x4.sub(f32x4.div(loadRow(row, i + 4, n), t), max)));
  if (i + 8 < n) s2 = f32x4.add(s2, exp4(f32x4.sub(f32x4.div(loadRow(row, i + 8, n), t), max)));
  if (i + 12 < n) s3 = f32x4.add(s3, exp4(f32x4.sub(f32x4.div(loadRow(row, i + 12, n), t), max)));
  return top + log1(sumLanes(f32x4.add(f32x4.add(s0, s1), f32x4.add(s2, s3))));
}
