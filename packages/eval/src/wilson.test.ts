import { describe, expect, it } from "vitest";
import { wilsonInterval } from "./wilson.js";

describe("wilsonInterval", () => {
  // Values of statsmodels 0.15.0, proportion_confint(k, n, method="wilson").
  it.each([
    [0, 4, 0, 0.489891],
    [4, 4, 0.510109, 1],
    [1, 1, 0.206549, 1],
    [5, 10, 0.236593, 0.763407],
    [32, 105, 0.224902, 0.398403],
  ])("of %i in %i is %f to %f", (successes, count, low, high) => {
    const found = wilsonInterval(successes, count);
    expect(found.low).toBeCloseTo(low, 6);
    expect(found.high).toBeCloseTo(high, 6);
  });

  it("refuses what is no proportion", () => {
    for (const [successes, count] of [
      [0, 0],
      [-1, 4],
      [5, 4],
      [Number.NaN, 4],
    ] as const) {
      expect(() => wilsonInterval(successes, count)).toThrow(/no proportion/);
    }
  });
});
