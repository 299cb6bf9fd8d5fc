import { describe, expect, it } from "vitest";
import { parseSessionSpec } from "./session-spec.js";

describe("a session specification", () => {
  it("is taken as it is when every field is right; null counts as absent", () => {
    const spec = {
      attemptId: "a1",
      taskId: "t1",
      training: true,
      sampling: { temperature: 0.7 },
      budgets: { maxCalls: 3, wallClockMs: 1000 },
      labels: { group: "g" },
    };
    expect(parseSessionSpec(spec)).toEqual(spec);
    expect(parseSessionSpec({ attemptId: null })).toEqual({});
  });

  it.each([
    [[], "(body)"],
    [{ attemptId: 3 }, "attemptId"],
    [{ taskId: "" }, "taskId"],
    [{ training: "yes" }, "training"],
    [{ sampling: { temperature: -1 } }, "sampling.temperature"],
    [{ sampling: { top_p: 1 } }, "sampling.top_p"],
    [{ sampling: { topP: 0 } }, "sampling.topP"],
    [{ budgets: { maxCalls: 0 } }, "budgets.maxCalls"],
    [{ budgets: { maxCalls: "3" } }, "budgets.maxCalls"],
    [{ budgets: { maxTurns: 3 } }, "budgets.maxTurns"],
    [{ budgets: { toString: 3 } }, "budgets.toString"],
    [{ labels: { a: 1 } }, "labels.a"],
    [{ key: "sk-gimbal-mine" }, "key"],
  ])("%j is refused naming %s", (spec, field) => {
    expect(() => parseSessionSpec(spec)).toThrow(
      expect.objectContaining({
        code: "invalid-request",
        message: expect.stringContaining(`"${field}"`),
      }),
    );
  });
});
