import { type AttemptId, asId, type TaskId } from "@gimbal-rl/core";
import { createMemoryStore } from "@gimbal-rl/store";
import { describe, expect, it } from "vitest";
import { readOverview } from "./run-overview.js";
import type { StoredRun } from "./stored-run.js";

/** A stored run with one attempt per score, two attempts per task. */
function runOf(scores: readonly (number | null)[]): StoredRun {
  return {
    runDir: "/nowhere",
    manifest: null,
    discarded: [],
    attempts: scores.map((score, i) => ({
      sequence: i + 1,
      record: {
        attempt: {
          attemptId: asId<AttemptId>(`eval-before/t/${i}`),
          taskId: asId<TaskId>(`t${Math.floor(i / 2)}`),
        },
        sessionId: `session-${i}`,
        verdict: { score },
        failureClass: score === null ? "infrastructure" : "none",
        sandboxLevel: "process",
        calls: 1,
      },
    })),
    store: createMemoryStore(),
    [Symbol.asyncDispose]: async () => {},
  } as unknown as StoredRun;
}

describe("readOverview", () => {
  it("leaves attempts without a score out of the means, and knows no mean without a score", async () => {
    const { phases } = await readOverview(runOf([1, null, 0.5, 0]));
    expect(phases[0]).toMatchObject({ attempts: 4, passed: 1, passAt1: 0.5, meanScore: 0.5 });
    expect(phases[0]?.failures).toEqual({ none: 3, infrastructure: 1 });
    const unscored = await readOverview(runOf([null]));
    expect(unscored.phases[0]).toMatchObject({ attempts: 1, passAt1: null, meanScore: null });
  });
});
