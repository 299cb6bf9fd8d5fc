import { describe, expect, it } from "vitest";
import { shuffleRewards } from "./step-batches.js";

describe("shuffleRewards", () => {
  it("permutes: the same rewards, the same for a seed, and the input is left alone", () => {
    const rewards = [1, 0, null, 0.5, 0, 1];
    const before = [...rewards];
    const orders = new Set<string>();
    for (let seed = 0; seed < 50; seed += 1) {
      const shuffled = shuffleRewards(rewards, seed);
      expect(shuffleRewards(rewards, seed)).toEqual(shuffled);
      expect(shuffled.map(String).sort()).toEqual(rewards.map(String).sort());
      orders.add(shuffled.join());
    }
    expect(rewards).toEqual(before);
    expect(orders.size).toBeGreaterThan(20);
    expect(shuffleRewards([], 1)).toEqual([]);
  });

  it("has no preference: a lone success lands on every place about equally often", () => {
    const counts = [0, 0, 0, 0];
    for (let seed = 0; seed < 4000; seed += 1) {
      const place = shuffleRewards([1, 0, 0, 0], seed).indexOf(1);
      counts[place] = (counts[place] ?? 0) + 1;
    }
    // Five standard deviations of a binomial with n = 4000, p = 1/4 are 137.
    for (const count of counts) expect(Math.abs(count - 1000)).toBeLessThan(137);
  });
});
