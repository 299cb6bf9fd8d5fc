import fc from "fast-check";
import { expect, test } from "vitest";
import { groupAdvantages, grpoAdvantages } from "./advantages.js";

const scores = fc.array(
  fc.integer({ min: 0, max: 8 }).map((n) => n / 8),
  { minLength: 1 },
);
const numbers = (values: readonly (number | null)[]): number[] =>
  values.filter((value) => value !== null);

test("golden vectors of [1, 0, 0, 0]: population, sample, and no deviation", () => {
  const rewards = [1, 0, 0, 0];
  const near = (values: readonly (number | null)[], expected: number[]): void =>
    values.forEach((value, i) => {
      expect(value).toBeCloseTo(expected[i], 4);
    });
  near(groupAdvantages(rewards), [1.73205, -0.57735, -0.57735, -0.57735]);
  near(
    groupAdvantages(rewards, { ...grpoAdvantages, deviation: "sample" }),
    [1.5, -0.5, -0.5, -0.5],
  );
  near(groupAdvantages(rewards, { ...grpoAdvantages, scale: "none" }), [0.75, -0.25, -0.25, -0.25]);
});

test("advantages of scored attempts sum to zero", () => {
  fc.assert(
    fc.property(scores, (rewards) => {
      const sum = numbers(groupAdvantages(rewards)).reduce((a, b) => a + b, 0);
      expect(Math.abs(sum)).toBeLessThan(1e-9);
    }),
  );
});

test("a constant added to all rewards changes nothing", () => {
  fc.assert(
    fc.property(scores, (rewards) => {
      const moved = groupAdvantages(rewards.map((reward) => reward + 4));
      groupAdvantages(rewards).forEach((value, i) => {
        expect(moved[i]).toBeCloseTo(value ?? Number.NaN, 9);
      });
    }),
  );
});

test("equal rewards give exact zeros, also where the mean rounds", () => {
  expect(groupAdvantages([0.1, 0.1, 0.1])).toEqual([0, 0, 0]);
  expect(groupAdvantages([1])).toEqual([0]);
  expect(groupAdvantages([])).toEqual([]);
});

test("an attempt that was not scored stays null and moves nobody", () => {
  const [a, b, c] = groupAdvantages([1, null, 0]);
  expect([a, c]).toEqual(groupAdvantages([1, 0]));
  expect(b).toBeNull();
});
