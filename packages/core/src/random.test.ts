import { describe, expect, it } from "vitest";
import { createRandom, hashToSeed, shuffled } from "./random.js";

describe("shuffled", () => {
  it("permutes: the same items, the same for a seed, and the input is left alone", () => {
    const items = [1, 0, null, 0.5, 0, 1];
    const before = [...items];
    const orders = new Set<string>();
    for (let seed = 0; seed < 50; seed += 1) {
      const order = shuffled(items, createRandom(seed));
      expect(shuffled(items, createRandom(seed))).toEqual(order);
      expect(order.map(String).sort()).toEqual(items.map(String).sort());
      orders.add(order.join());
    }
    expect(items).toEqual(before);
    expect(orders.size).toBeGreaterThan(20);
    expect(shuffled([], createRandom(1))).toEqual([]);
  });

  it("has no preference: a lone success lands on every place about equally often", () => {
    const counts = [0, 0, 0, 0];
    for (let seed = 0; seed < 4000; seed += 1) {
      const place = shuffled([1, 0, 0, 0], createRandom(seed)).indexOf(1);
      counts[place] = (counts[place] ?? 0) + 1;
    }
    // Five standard deviations of a binomial with n = 4000, p = 1/4 are 137.
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(137);
  });
});

describe("hashToSeed", () => {
  it("refuses numbers that are not whole, also in lists", () => {
    for (const value of [0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60]) {
      expect(() => hashToSeed("a", value)).toThrow(RangeError);
      expect(() => hashToSeed([1, value])).toThrow(RangeError);
    }
    expect(hashToSeed(-1, [2 ** 31])).toBe(hashToSeed(-1, [2 ** 31]));
  });
});
