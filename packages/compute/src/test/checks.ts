/**
 * Checks of the contract suites. They throw plain errors, so that the suites need no test framework.
 */
import { createRandom, GimbalError, hashToSeed } from "@gimbal-rl/core";
import type { Backend } from "../backend.js";

/** One law as a runnable check. Throws when the backend breaks it. */
export interface ContractCase {
  /** A sentence about behaviour. */
  readonly name: string;
  run(backend: Backend): Promise<void>;
}

function fail(message: string): never {
  throw new GimbalError("shape-mismatch", message, { boundary: "compute" });
}

/** Largest difference between two buffers, relative to the largest magnitude expected. NaN counts as infinite. */
export function relativeDifference(
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
): { readonly difference: number; readonly index: number } {
  let scale = 1e-30;
  let difference = 0;
  let index = 0;
  for (let i = 0; i < expected.length; i += 1) scale = Math.max(scale, Math.abs(expected[i]));
  for (let i = 0; i < expected.length; i += 1) {
    const d = Math.abs(actual[i] - expected[i]) / scale;
    if (!(d <= difference)) {
      difference = Number.isNaN(d) ? Number.POSITIVE_INFINITY : d;
      index = i;
    }
  }
  return { difference, index };
}

/** Throws when buffers differ by more than `tolerance`, relative to the largest magnitude expected. */
export function expectClose(
  what: string,
  actual: ArrayLike<number>,
  expected: ArrayLike<number>,
  tolerance: number,
): void {
  if (actual.length !== expected.length)
    fail(`${what}: found ${actual.length} values, expected ${expected.length}.`);
  const { difference, index } = relativeDifference(actual, expected);
  if (difference > tolerance) {
    fail(
      `${what}: relative difference ${difference.toExponential(2)} at ${index} (${actual[index]} instead of ${expected[index]}), allowed ${tolerance}.`,
    );
  }
}

/** Throws when two f32 buffers are not the same, bit for bit. */
export function expectSameBits(what: string, actual: Float32Array, expected: Float32Array): void {
  if (actual.length !== expected.length)
    fail(`${what}: found ${actual.length} values, expected ${expected.length}.`);
  const a = new Uint32Array(actual.buffer, actual.byteOffset, actual.length);
  const b = new Uint32Array(expected.buffer, expected.byteOffset, expected.length);
  for (let i = 0; i < a.length; i += 1) {
    if (a[i] !== b[i])
      fail(`${what}: found ${actual[i]} at ${i}, expected exactly ${expected[i]}.`);
  }
}

/** Throws unless `condition`. */
export function expectTrue(what: string, condition: boolean): void {
  if (!condition) fail(what);
}

/** Seeded normal-ish values (sum of three uniforms), f32, deviation `scale`. */
export function randomFloats(length: number, seed: string, scale = 1): Float32Array {
  const random = createRandom(hashToSeed(seed, length));
  const next = () => (random.next() + random.next() + random.next() - 1.5) * 2 * scale;
  return Float32Array.from({ length }, next);
}

/** Seeded integers in [0, bound). */
export function randomInts(length: number, bound: number, seed: string): Int32Array {
  const random = createRandom(hashToSeed(seed, length, bound));
  return Int32Array.from({ length }, () => random.integer(bound));
}

/**
 * Central differences of a scalar function, in f64; truncation error is near 1e-9 for values near 1.
 * @param indices - which components; all by default.
 */
export function numericGradient(
  loss: (x: Float64Array) => number,
  x: Float64Array,
  indices: readonly number[] = [...x.keys()],
): Float64Array {
  const step = 1e-5;
  const moved = x.slice();
  return Float64Array.from(indices, (i) => {
    moved[i] = x[i] + step;
    const up = loss(moved);
    moved[i] = x[i] - step;
    const down = loss(moved);
    moved[i] = x[i];
    return (up - down) / (2 * step);
  });
}

/** Inner product in f64. */
export function innerProduct(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}
