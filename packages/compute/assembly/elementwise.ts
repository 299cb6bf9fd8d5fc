/**
 * Elementwise kernels and the optimiser. Unit: a block of 1024 floats; every block is a multiple of four lanes
 * except the last, whose over-read and over-write stay inside the buffer's padding, which no result depends on.
 */
import { argument, copyFloats, fillFloats, pointer, scalar } from "./memory";
import { exp4, unit4 } from "./math";

const BLOCK: i32 = 1024;

/** args: target, length, value. */
export function fill(a: usize, start: i32, end: i32): void {
  const from = start * BLOCK;
  const to = min(argument(a, 1), end * BLOCK);
  fillFloats(pointer(a, 0) + (<usize>from << 2), scalar(a, 2), to - from);
}

/** args: target, length, source. */
export function copy(a: usize, start: i32, end: i32): void {
  const from = start * BLOCK;
  const to = min(argument(a, 1), end * BLOCK);
  const o = <usize>from << 2;
  copyFloats(pointer(a, 0) + o, pointer(a, 2) + o, to - from);
}

/** args: target, length, source, scale. */
export function addScaled(a: usize, start: i32, end: i32): void {
  const last = <usize>min(argument(a, 1), end * BLOCK) << 2;
  const target = pointer(a, 0);
  const source = pointer(a, 2);
  const scale = f32x4.splat(scalar(a, 3));
  for (let o = <usize>(start * BLOCK) << 2; o < last; o += 16) {
    v128.store(target + o, f32x4.add(v128.load(target + o), f32x4.mul(scale, v128.load(source + o))));
  }
}

/** 1 / (1 + exp(-x)). */
// @ts-ignore: decorator
@inline
function sigmoid4(x: v128): v128 {
  const one = unit4();
  return f32x4.div(one, f32x4.add(one, exp4(f32x4.neg(x))));
}

/** args: out, length, gate, up. */
export function swiglu(a: usize, start: i32, end: i32): void {
  const last = <usize>min(argument(a, 1), end * BLOCK) << 2;
  const out = pointer(a, 0);
  const gate = pointer(a, 2);
  const up = pointer(a, 3);
  for (let o = <usize>(start * BLOCK) << 2; o < last; o += 16) {
    const g = v128.load(gate + o);
    v128.store(out + o, f32x4.mul(f32x4.mul(g, sigmoid4(g)), v128.load(up + o)));
  }
}

/** args: gradGate, length, gradUp, gradOut, gate, up. */
export function swigluBackward(a: usize, start: i32, end: i32): void {
  const last = <usize>min(argument(a, 1), end * BLOCK) << 2;
  const gradGate = pointer(a, 0);
  const gradUp = pointer(a, 2);
  const gradOut = pointer(a, 3);
  const gate = pointer(a, 4);
  const up = pointer(a, 5);
  const one = unit4();
  for (let o = <usize>(start * BLOCK) << 2; o < last; o += 16) {
    const g = v128.load(gate + o);
    const d = v128.load(gradOut + o);
    const s = sigmoid4(g);
    const silu = f32x4.mul(g, s);
    // silu' = s (1 + g (1 - s)) = s + silu (1 - s)
    const slope = f32x4.add(s, f32x4.mul(silu, f32x4.sub(one, s)));
    const dg = f32x4.mul(f32x4.mul(d, v128.load(up + o)), slope);
    v128.store(gradGate + o, f32x4.add(v128.load(gradGate + o), dg));
    v128.store(gradUp + o, f32x4.add(v128.load(gradUp + o), f32x4.mul(d, silu)));
  }
}

/** args: partials (f64 per block), length, x. Sum of squares of a block in index order. */
export function sumOfSquares(a: usize, start: i32, end: i32): void {
  const length = argument(a, 1);
  const x = pointer(a, 2);
  for (let u = start; u < end; u++) {
    let sum: f64 = 0;
    const last = <usize>min(length, (u + 1) * BLOCK) << 2;
    for (let o = <usize>(u * BLOCK) << 2; o < last; o += 4) {
      const v = <f64>load<f32>(x + o);
      sum += v * v;
    }
    store<f64>(pointer(a, 0) + (<usize>u << 3), sum);
  }
}

/**
 * AdamW (1711.05101) with bias correction.
 * args: weight, length, gradient, first, second, learningRate, beta1, 1 - beta1, beta2, 1 - beta2, epsilon,
 * learningRate * weightDecay, gradientScale, 1 / (1 - beta1^step), 1 / (1 - beta2^step).
 */
export function adamW(a: usize, start: i32, end: i32): void {
  const last = <usize>min(argument(a, 1), end * BLOCK) << 2;
  const weight = pointer(a, 0);
  const gradient = pointer(a, 2);
  const first = pointer(a, 3);
  const second = pointer(a, 4);
  const learningRate = f32x4.splat(scalar(a, 5));
  const beta1 = f32x4.splat(scalar(a, 6));
  const rest1 = f32x4.splat(scalar(a, 7));
  const beta2 = f32x4.splat(scalar(a, 8));
  const rest2 = f32x4.splat(scalar(a, 9));
  const epsilon = f32x4.splat(scalar(a, 10));
  const decay = f32x4.splat(scalar(a, 11));
  const scale = f32x4.splat(scalar(a, 12));
  const correct1 = f32x4.splat(scalar(a, 13));
  const correct2 = f32x4.splat(scalar(a, 14));
  for (let o = <usize>(start * BLOCK) << 2; o < last; o += 16) {
    const g = f32x4.mul(v128.load(gradient + o), scale);
    const m = f32x4.add(f32x4.mul(beta1, v128.load(first + o)), f32x4.mul(rest1, g));
    const v = f32x4.add(f32x4.mul(beta2, v128.load(second + o)), f32x4.mul(rest2, f32x4.mul(g, g)));
    v128.store(first + o, m);
    v128.store(second + o, v);
    const w = v128.load(weight + o);
    const denominator = f32x4.add(f32x4.sqrt(f32x4.mul(v, correct2)), epsilon);
    const update = f32x4.div(f32x4.mul(f32x4.mul(m, correct1), learningRate), denominator);
    v128.store(weight + o, f32x4.sub(f32x4.sub(w, f32x4.mul(decay, w)), update));
  }
}
