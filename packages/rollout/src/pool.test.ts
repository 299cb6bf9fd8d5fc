import { describe, expect, it } from "vitest";
import { mapPooled } from "./pool.js";

describe("mapPooled", () => {
  it("keeps the order of the items and never runs more than the limit", async () => {
    let running = 0;
    let most = 0;
    const results = await mapPooled([3, 1, 2, 5, 4], 2, async (value) => {
      running += 1;
      most = Math.max(most, running);
      for (let i = 0; i < value; i += 1) await Promise.resolve();
      running -= 1;
      return value * 10;
    });
    expect(results).toEqual([30, 10, 20, 50, 40]);
    expect(most).toBe(2);
  });

  it("throws the first failure after the running jobs ended, and starts no more", async () => {
    const started: number[] = [];
    let finished = false;
    const run = mapPooled([0, 1, 2, 3], 2, async (value) => {
      started.push(value);
      if (value === 0) throw new Error("first");
      await Promise.resolve();
      await Promise.resolve();
      finished = true;
    });
    await expect(run).rejects.toThrow("first");
    expect(finished).toBe(true);
    expect(started).toEqual([0, 1]);
  });
});
