/**
 * Root-mean-square normalisation and rotary embedding, row by row.
 *
 * Law: a row reduction uses four partial sums, column i going to i mod 4, combined in one fixed order; it depends
 * on the row alone. Weight gradients add rows in order.
 */
import { argument, pointer, scalar } from "./memory";
import { sumLanes } from "./math";

/** args: out, inverseRms, x, weight, width, epsilon. Unit: one row. */
export function rmsNorm(a: usize, start: i32, end: i32): void {
  const width = argument(a, 4);
  const epsilon = scalar(a, 5);
  const bytes = <usize>width << 2;
  for (let r = start; r < end; r++) {
    const x = pointer(a, 2) + <usize>r * bytes;
    const out = pointer(a, 0) + <usize>r * bytes;
    const weight = pointer(a, 3);
    let sums = f32x4.splat(0);
    let i: usize = 0;
    for (; i + 16 <= bytes; i += 16) {
      const v = v128.load(x + i);
      sums = f32x4.add(sums, f32x4.mul(v, v));
    }
    let sum = sumLanes(sums);
    for (; i < bytes; i += 4) sum += load<f32>(x + i) * load<f32>(x + i);
    const inverse = <f32>1 / sqrt<f32>(sum / <f32>width + epsilon);
    store<f32>(pointer(a, 1) + (<usize>r << 2), inverse);
    const scale = f32x4.splat(inverse);
    i = 0;
    for (; i + 16 <= bytes; i += 16) {
      v128.store(out + i, f32x4.mul(f32x4.mul(v128.load(x + i), scale), v128.load(weight + i)));
    }
    for (; i < bytes; i += 4) store<f32>(out + i, load<f32>(x + i) * inverse * load<f32>(weight + i));
  }
}

/**
 * gradX += inv * (g w - x inv^2 mean(g w x)).
 * args: gradX, gradOut, x, inverseRms, weight, width. Unit: one row.
 */
export function rmsNormBackwardInput(a: usize, start: i32, end: i32): void {
  const width = argument(a, 5);
  const bytes = <usize>width << 2;
  for (let r = start; r < end; r++) {
    const gradX = pointer(a, 0) + <usize>r * bytes;
    const g = pointer(a, 1) + <usize>r * bytes;
    const x = pointer(a, 2) + <usize>r * bytes;
    const inverse = load<f32>(pointer(a, 3) + (<usize>r << 2));
    const weight = pointer(a, 4);
    let sums = f32x4.splat(0);
    let i: usize = 0;
    for (; i + 16 <= bytes; i += 16) {
      const gw = f32x4.mul(v128.load(g + i), v128.load(weight + i));
      sums = f32x4.add(sums, f32x4.mul(gw, v128.load(x + i)));
    }
    let sum = sumLanes(sums);
    for (; i < bytes; i += 4) sum += load<f32>(g + i) * load<f32>(weight + i) * load<f32>(x + i);
    const pull = (sum / <f32>width) * inverse * inverse;
    const p = f32x4.splat(pull);
    const s = f32x4.splat(inverse);
    i = 0;
    for (; i + 16 <= bytes; i += 16) {
      const gw = f32x4.mul(v128.load(g + i), v128.load(weight + i));
      const d = f32x4.mul(s, f32x4.sub(gw, f32x4.mul(v128.load(x + i), p)));
      v128.store(gradX + i, f32x4.add(v128.load(gradX + i), d));
    }
    for (; i < bytes; i += 4) {
      const d = inverse * (load<f32>(g + i) * load<f32>(weight + i) - load<f32>(x + i) * pull);
      store<f32>(gradX + i, load<f32>(gradX + i) + d);
    }
  }
}

/** args: gradWeight, gradOut, x, inverseRms, R, width. gradWeight += g x inv, rows in order. Unit: 16 columns. */
export function rmsNormBackwardWeight(a: usize, start: i32, end: i32): void {
  const R = argument(a, 4);
  const width = argument(a, 5);
  const bytes = <usize>width << 2;
  for (let u = start; u < end; u++) {
    const c0 = u * 16;
    const c1 = min(width, c0 + 16);
    let g = pointer(a, 1) + (<usize>c0 << 2);
    let x = pointer(a, 2) + (<usize>c0 << 2);
    let inv = pointer(a, 3);
    const d = pointer(a, 0) + (<usize>c0 << 2);
    if (c1 - c0 == 16) {
      let s0 = v128.load(d);
      let s1 = v128.load(d, 16);
      let s2 = v128.load(d, 32);
      let s3 = v128.load(d, 48);
      for (let r = 0; r < R; r++) {
        const s = v128.load32_splat(inv);
        s0 = f32x4.add(s0, f32x4.mul(f32x4.mul(v128.load(x), s), v128.load(g)));
        s1 = f32x4.add(s1, f32x4.mul(f32x4.mul(v128.load(x, 16), s), v128.load(g, 16)));
        s2 = f32x4.add(s2, f32x4.mul(f32x4.mul(v128.load(x, 32), s), v128.load(g, 32)));
        s3 = f32x4.add(s3, f32x4.mul(f32x4.mul(v128.load(x, 48), s), v128.load(g, 48)));
        g += bytes;
        x += bytes;
        inv += 4;
      }
      v128.store(d, s0);
      v128.store(d, s1, 16);
      v128.store(d, s2, 32);
      v128.store(d, s3, 48);
    } else {
      for (let r = 0; r < R; r++) {
        for (let c = 0; c < c1 - c0; c++) {
          const o = <usize>c << 2;
          store<f32>(d + o, load<f32>(d + o) + load<f32>(x + o) * load<f32>(inv) * load<f32>(g + o));
        }
        g += bytes;
        x += bytes;
        inv += 4;
      }
    }
  }
}

/** args: x, positions, cosSin, heads, headWidth, sign (1 or -1). Unit: one row. */
export function rope(a: usize, start: i32, end: i32): void {
  const heads = argument(a, 3);
  const width = argument(a, 4);
  const sign = scalar(a, 5);
  const half = <usize>(width >> 1) << 2;
  const bytes = <usize>width << 2;
  const signs = f32x4.splat(sign);
  for (let r = start; r < end; r++) {
    const position = load<i32>(pointer(a, 1) + (<usize>r << 2));
    const cos = pointer(a, 2) + <usize>position * bytes;
    const sin = cos + half;
    let x = pointer(a, 0) + <usize>r * <usize>heads * bytes;
    for (let h = 0; h < heads; h++) {
      let i: usize = 0;
      for (; i + 16 <= half; i += 16) {
        const c = v128.load(cos + i);
        const s = f32x4.mul(v128.load(sin + i), signs);
        const p = v128.load(x + i);
        const q = v128.load(x + half + i);
        v128.store(x + i, f32x4.sub(f32x4.mul(p, c), f32x4.mul(q, s)));
        v128.store(x + half + i, f32x4.add(f32x4.mul(q, c), f32x4.mul(p, s)));
      }
      for (; i < half; i += 4) {
        const c = load<f32>(cos + i);
        const s = load<f32>(sin + i) * sign;
        const p = load<f32>(x + i);
        const q = load<f32>(x + half + i);
        store<f32>(x + i, p * c - q * s);
        store<f32>(x + half + i, q * c + p * s);
      }
      x += bytes;
    }
  }
}
