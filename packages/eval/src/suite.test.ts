import {
  asId,
  GimbalError,
  type PolicyVersion,
  type SessionId,
  type Task,
  type TaskId,
} from "@gimbal-rl/core";
import {
  type AttemptDependencies,
  type AttemptRecord,
  attemptEndKind,
  planGroup,
} from "@gimbal-rl/rollout";
import { createMemoryStore } from "@gimbal-rl/store";
import { describe, expect, it } from "vitest";
import { runSuite, type SuiteResult, suitePassAtK } from "./suite.js";

const policyVersion = asId<PolicyVersion>("step-0");
const tasks = ["a", "b"].map(
  (name): Task => ({
    taskId: asId<TaskId>(`desk/heldout/${name}`),
    suite: "fake",
    family: `family ${name}`,
    split: "heldout",
    instruction: "",
    files: {},
    protectedPaths: [],
    gradingFiles: {},
    verifier: { kind: "fake", options: {} },
    budgets: {},
  }),
);

/** No attempt may be started: all are stored. */
const noDependencies = {
  sessions: {
    createSession: () => {
      throw new GimbalError("unavailable", "An attempt was started.");
    },
  },
  harness: { id: "fake" },
  verifiers: new Map([["fake", {}]]),
  clock: { nowMs: () => 0, schedule: () => () => {} },
} as unknown as AttemptDependencies;

describe("runSuite", () => {
  it("reads stored attempts back by label, task and place, and counts them per task", async () => {
    const store = createMemoryStore();
    const scores = [
      [1, 0, 1],
      [0, 0.5, 0],
    ];
    for (const [i, task] of tasks.entries()) {
      const options = { label: "eval-before", task, size: 3, runSeed: 5, policyVersion };
      for (const attempt of planGroup(options).attempts) {
        const score = scores[i]?.[attempt.index] ?? 0;
        const record = {
          attempt,
          sessionId: asId<SessionId>(attempt.attemptId),
          verdict: { verifier: "fake", score, failureClass: "none", evidence: [] },
        } as unknown as AttemptRecord;
        await store.append(attemptEndKind, attempt.attemptId, record);
      }
    }
    const options = {
      ...{ label: "eval-before", tasks, samples: 3, seed: 5, policyVersion },
      collect: { dependencies: noDependencies, store, concurrency: 2, training: true, maxTries: 1 },
    };
    const result = await runSuite(options, new AbortController().signal);
    expect(result.tasks).toEqual([
      { taskId: tasks[0]?.taskId, family: "family a", samples: 3, successes: 2, score: 2 / 3 },
      { taskId: tasks[1]?.taskId, family: "family b", samples: 3, successes: 0, score: 0.5 / 3 },
    ]);
    expect(result.records).toHaveLength(6);
    // Another label is another evaluation: nothing of it is stored, so it would start.
    const other = runSuite({ ...options, label: "eval-after" }, new AbortController().signal);
    await expect(other).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("a suite with a stored attempt that has no score", () => {
  it("is refused: a score that is missing is not a zero", async () => {
    const store = createMemoryStore();
    const options = { label: "x", tasks, samples: 1, seed: 5, policyVersion };
    for (const task of tasks) {
      for (const attempt of planGroup({ label: "x", task, size: 1, runSeed: 5, policyVersion })
        .attempts) {
        const record = { attempt, verdict: { score: null } };
        await store.append(attemptEndKind, attempt.attemptId, record);
      }
    }
    const collect = { dependencies: noDependencies, store, concurrency: 1, training: true };
    await expect(
      runSuite({ ...options, collect }, new AbortController().signal),
    ).rejects.toMatchObject({ code: "store-corrupt" });
  });
});

describe("suitePassAtK", () => {
  const suite: SuiteResult = {
    label: "x",
    tasks: [
      { taskId: "a", family: "f", samples: 4, successes: 4, score: 1 },
      { taskId: "b", family: "f", samples: 4, successes: 1, score: 0.25 },
    ],
    records: [],
  };

  it("counts each task once", () => {
    expect(suitePassAtK(suite, 1, { seed: 1 }).mean).toBe(0.625);
    expect(suitePassAtK(suite, 2, { seed: 1 }).mean).toBe(0.75);
  });

  it("has an interval with a width when all passed: Wilson's with one sample a task, else a bootstrap", () => {
    const tasks = ["a", "b", "c", "d"].map((taskId) => ({
      ...{ taskId, family: "f", samples: 1, successes: 1, score: 1 },
    }));
    const { high, low, mean, method } = suitePassAtK({ ...suite, tasks }, 1, { seed: 1 });
    expect({ high, mean, method }).toEqual({ high: 1, mean: 1, method: "wilson" });
    expect(low).toBeCloseTo(0.5101, 4);
    expect(suitePassAtK(suite, 1, { seed: 1 }).method).toBe("bootstrap");
    const narrow = suitePassAtK({ ...suite, tasks }, 1, { seed: 1, confidence: 0.5 });
    expect(narrow.method).toBe("bootstrap");
  });

  it("refuses a k above the samples", () => {
    expect(() => suitePassAtK(suite, 5, { seed: 1 })).toThrow(/k/);
  });
});
