import { createMemoryStore } from "@gimbal-rl/store";
import { describe, expect, it } from "vitest";
import { loadCalls } from "./collect-attempts.js";

describe("loadCalls", () => {
  it("gives the calls of the sessions wanted by place, and reads nothing before the cursor", async () => {
    const store = createMemoryStore();
    const add = (sessionId: string, index: number): Promise<boolean> =>
      store.append("call-end", `${sessionId}.${index}`, { sessionId, index });
    await add("one", 0);
    await store.append("step-plan", "1", []);
    await add("two", 1);
    await add("three", 0);
    await add("two", 0);
    const indexes = async (after: number): Promise<unknown> =>
      [...(await loadCalls(store, new Set(["one", "two"]), after))].map(([sessionId, calls]) => [
        sessionId,
        calls.map(({ index }) => index),
      ]);
    expect(await indexes(0)).toEqual([
      ["one", [0]],
      ["two", [0, 1]],
    ]);
    expect(await indexes(2)).toEqual([
      ["one", []],
      ["two", [0, 1]],
    ]);
  });
});
