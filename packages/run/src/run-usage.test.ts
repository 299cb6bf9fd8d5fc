import { createMemoryStore } from "@gimbal-rl/store";
import { describe, expect, it } from "vitest";
import { createUsageWriter, readRunUsage } from "./run-usage.js";

describe("readRunUsage", () => {
  it("sums the latest entry of each process", async () => {
    const store = createMemoryStore();
    const first = createUsageWriter(store, "100-1");
    await first({ wallSeconds: 5, samplingSeconds: 1 });
    await first({ wallSeconds: 9, samplingSeconds: 2 });
    const second = createUsageWriter(store, "200-1");
    await second({ wallSeconds: 4, samplingSeconds: 3 });
    expect(await readRunUsage(store)).toEqual({ wallSeconds: 13, samplingSeconds: 5 });
  });

  it("is zero for a run without entries", async () => {
    expect(await readRunUsage(createMemoryStore())).toEqual({ wallSeconds: 0, samplingSeconds: 0 });
  });
});
