import type { GimbalError } from "@gimbal-rl/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { passAtK } from "./pass-at-k.js";

function subsets(values: readonly boolean[], k: number): boolean[][] {
  if (k === 0) return [[]];
  return values.flatMap((value, i) =>
    subsets(values.slice(i + 1), k - 1).map((rest) => [value, ...rest]),
  );
}

describe("passAtK", () => {
  it("equals the share of all k-subsets that hold a success", () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
        fc.integer({ min: 1, max: 8 }),
        (outcomes, k) => {
          fc.pre(k <= outcomes.length);
          const all = subsets(outcomes, k);
          const share = all.filter((subset) => subset.includes(true)).length / all.length;
          const successes = outcomes.filter(Boolean).length;
          expect(passAtK(outcomes.length, successes, k)).toBeCloseTo(share, 12);
        },
      ),
    );
  });

  it("matches the published example values", () => {
    expect(passAtK(5, 2, 1)).toBeCloseTo(0.4, 12);
    expect(passAtK(10, 3, 5)).toBeCloseTo(1 - 21 / 252, 12);
    expect(passAtK(200, 0, 100)).toBe(0);
  });

  it("refuses impossible counts with the code shape-mismatch", () => {
    for (const [n, c, k] of [
      [2, 3, 1],
      [2, 1, 3],
      [2, 1, 0],
      [2.5, 1, 1],
    ] as const) {
      expect(() => passAtK(n, c, k)).toThrow(
        expect.objectContaining({ code: "shape-mismatch" }) as GimbalError,
      );
    }
  });
});
