/**
 * exp and log of the kernels, and the log-sum-exp of a row.
 *
 * Laws: every lane of `exp4` computes the same value for the same input wherever it stands. Row sums use
 * four partial sums, index i going to i mod 4, combined in one fixed order, so that a row's result depends on the row
 * alone.
 */

/**
 * Constants of exp4, a vector each, at a fixed address: V8 builds a vector constant from several instructions at every
 * use, a load is one. For the same reason loops call `exp4` once a step.
 */
const TABLE: usize = 2048;

/** Fills the constant table; called once per memory, before any kernel. */
export function writeConstants(): void {
  v128.store(TABLE, f32x4.splat(-87.33654), 0); // lowest argument with a normal result
  v128.store(TABLE, f32x4.splat(88.37626), 16); // highest argument with a finite result
  v128.store(TABLE, f32x4.splat(1.44269504088896341), 32); // 1 / ln 2
  v128.store(TABLE, f32x4.splat(12582912), 48); // adding 1.5 * 2^23 rounds to an integer, kept in the low bits
  v128.store(TABLE, f32x4.splat(0.693359375), 64); // ln 2, high part
  v128.store(TABLE, f32x4.splat(-2.1219444e-4), 80); // ln 2, low part
  v128.store(TABLE, f32x4.splat(1.98756915e-4), 96); // polynomial of (e^r - 1 - r) / r^2
  v128.store(TABLE, f32x4.splat(1.3981999507e-3), 112);
  v128.store(TABLE, f32x4.splat(8.3334519073e-3), 128);
  v128.store(TABLE, f32x4.splat(4.1665795894e-2), 144);
  v128.store(TABLE, f32x4.splat(1.6666665459e-1), 160);
  v128.store(TABLE, f32x4.splat(5.0000001201e-1), 176);
  v128.store(TABLE, f32x4.splat(1), 192); // one; its bits are also the exponent bias in place
}

/** Four ones. */
// @ts-ignore: decorator
@inline
export function unit4(): v128 {
  return v128.load(TABLE, 192);
}

/** e^x of four lanes, about 2 ulp (Cephes expf); 0 below -87.33, clamped above 88.37. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const lowest = v128.load(TABLE, 0);
  const y = f32x4.pmin(f32x4.pmax(x, lowest), v128.load(TABLE, 16));
  const rounder = v128.load(TABLE, 48);
  const t = f32x4.add(f32x4.mul(y, v128.load(TABLE, 32)), rounder);
  const n = f32x4.sub(t, rounder);
  let r = f32x4.sub(y, f32x4.mul(n, v128.load(TABLE, 64)));
  r = f32x4.sub(r, f32x4.mul(n, v128.load(TABLE, 80)));
  // The polynomial by pairs (Estrin): the shorter chain matters, not the number of operations.
  const r2 = f32x4.mul(r, r);
  const high = f32x4.add(f32x4.mul(v128.load(TABLE, 96), r), v128.load(TABLE, 112));
  const middle = f32x4.add(f32x4.mul(v128.load(TABLE, 128), r), v128.load(TABLE, 144));
  const low = f32x4.add(f32x4.mul(v128.load(TABLE, 160), r), v128.load(TABLE, 176));
  let p = f32x4.add(f32x4.mul(f32x4.add(f32x4.mul(high, r2), middle), r2), low);
  const one = v128.load(TABLE, 192);
  p = f32x4.add(f32x4.mul(p, r2), f32x4.add(r, one));
  return v128.andnot(f32x4.mul(p, i32x4.add(i32x4.shl(t, 23), one)), f32x4.lt(x, lowest));
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
  let sums = f32x4.splat(0);
  let i = 0;
  for (; i + 4 <= n; i += 4) {
    sums = f32x4.add(sums, exp4(f32x4.sub(f32x4.div(v128.load(row + (<usize>i << 2)), t), max)));
  }
  if (i < n) sums = f32x4.add(sums, exp4(f32x4.sub(f32x4.div(loadRow(row, i, n), t), max)));
  return top + log1(sumLanes(sums));
}
