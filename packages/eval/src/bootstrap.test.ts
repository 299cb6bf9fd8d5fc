import type { GimbalError } from "@gimbal-rl/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bootstrapMean, pairedBootstrap } from "./bootstrap.js";

describe("bootstrapMean", () => {
  it("covers the true mean about as often as its confidence says", () => {
    // 200 samples of 40 coin flips with p = 0.3: binomial(200, 0.93..0.95) stays well above 170.
    let covered = 0;
    for (let trial = 0; trial < 200; trial += 1) {
      const values = Array.from({ length: 40 }, (_, i) =>
        ((trial * 7919 + i * 104_729 + ((trial * 31 + i) % 97) * 613) % 1000) / 1000 < 0.3 ? 1 : 0,
      );
      const { low, high } = bootstrapMean(values, { seed: trial, resamples: 400 });
      if (low <= 0.3 && 0.3 <= high) covered += 1;
    }
    expect(covered).toBeGreaterThan(170);
  });

  it("brackets the mean, and is the same for the same seed", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 30 }),
        fc.nat(),
        (values, seed) => {
          const first = bootstrapMean(values, { seed, resamples: 200 });
          expect(bootstrapMean(values, { seed, resamples: 200 })).toEqual(first);
          expect(first.low).toBeLessThanOrEqual(first.high);
          expect(first.low).toBeGreaterThanOrEqual(Math.min(...values) - 1e-9);
          expect(first.high).toBeLessThanOrEqual(Math.max(...values) + 1e-9);
        },
      ),
    );
  });
});

describe("the options of a bootstrap", () => {
  it.each([
    { resamples: 0 },
    { resamples: 1.5 },
    { resamples: Number.NaN },
    { confidence: 0 },
    { confidence: 1 },
    { confidence: 95 },
    { confidence: Number.NaN },
  ])("are refused when impossible: %j", (options) => {
    const expected = expect.objectContaining({ code: "config-invalid" }) as GimbalError;
    expect(() => bootstrapMean([0, 1], { seed: 1, ...options })).toThrow(expected);
    expect(() => pairedBootstrap([0], [1], { seed: 1, ...options })).toThrow(expected);
  });

  it("may be as small as one resample", () => {
    const { high, low } = bootstrapMean([0, 1], { seed: 1, resamples: 1, confidence: 0.5 });
    expect(low).toBe(high);
  });
});

describe("pairedBootstrap", () => {
  it("has zero width when every task gains the same, however much the tasks differ", () => {
    const interval = pairedBootstrap([0, 0.25, 0.5], [0.5, 0.75, 1], { seed: 1, resamples: 100 });
    expect(interval).toEqual({ mean: 0.5, low: 0.5, high: 0.5 });
  });

  it("refuses different task counts", () => {
    expect(() => pairedBootstrap([1], [1, 0], { seed: 1 })).toThrow(
      expect.objectContaining({ code: "shape-mismatch" }) as GimbalError,
    );
  });
});
