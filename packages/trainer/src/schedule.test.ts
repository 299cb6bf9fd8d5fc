import { expect, test } from "vitest";
import { learningRateAt } from "./schedule.js";

test("the warm-up rises linearly to the peak and never starts at zero", () => {
  const schedule = { kind: "constant", peak: 4, warmupSteps: 3 } as const;
  expect([1, 2, 3, 4, 5].map((step) => learningRateAt(schedule, step))).toEqual([1, 2, 3, 4, 4]);
});

test("cosine and linear decay reach the final fraction at the last step and stay there", () => {
  for (const kind of ["cosine", "linear"] as const) {
    const schedule = { kind, peak: 2, warmupSteps: 2, totalSteps: 12, finalFraction: 0.1 };
    expect(learningRateAt(schedule, 7)).toBeCloseTo(2 * 0.55, 12);
    expect(learningRateAt(schedule, 12)).toBeCloseTo(0.2, 12);
    expect(learningRateAt(schedule, 99)).toBeCloseTo(0.2, 12);
  }
});

test("a decay without an end is refused", () => {
  expect(() => learningRateAt({ kind: "cosine", peak: 1 }, 1)).toThrowError(
    expect.objectContaining({ code: "config-invalid" }),
  );
});
