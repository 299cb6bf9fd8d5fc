import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  asId,
  type FailureClass,
  GimbalError,
  type Harness,
  type HarnessOutcome,
  type PolicyVersion,
  type Sandbox,
  type SandboxInstance,
  type SessionId,
  type Store,
  type Task,
  type TaskId,
  type TimerClock,
  type Verdict,
} from "@gimbal-rl/core";
import type { SessionInfo } from "@gimbal-rl/proxy";
import { createMemoryStore } from "@gimbal-rl/store";
import { describe, expect, it } from "vitest";
import { type AttemptRecord, attemptDiscardedKind, attemptEndKind } from "./attempt-record.js";
import type { AttemptDependencies } from "./attempt-runner.js";
import { type CollectOptions, collectGroups, planGroup } from "./collect-attempts.js";

const { signal } = new AbortController();

function taskNamed(name: string): Task {
  return {
    taskId: asId<TaskId>(name),
    suite: "fake",
    family: "fake",
    split: "train",
    instruction: "Do it.",
    files: {},
    protectedPaths: [],
    gradingFiles: {},
    verifier: { kind: "fake", options: {} },
    budgets: {},
  };
}

function planOf(name: string, size: number): ReturnType<typeof planGroup> {
  const policyVersion = asId<PolicyVersion>("step-0");
  return planGroup({
    label: "step-0001-0",
    task: taskNamed(name),
    size,
    runSeed: 1,
    policyVersion,
  });
}

/** What a try does; by attempt id and number of the try, from 1. */
type Script = (attemptId: string, tries: number) => Try;
interface Try {
  /** Default 1; null = not scored. */
  readonly score?: number | null;
  /** Thrown by the sandbox instead of running. */
  readonly error?: Error;
  /** The harness ends so, without a model call. */
  readonly noCall?: { readonly exitCode: number; readonly stderr: string };
  /** The harness waits for it, or for the signal. */
  readonly wait?: Promise<void>;
}

interface FakeClock extends TimerClock {
  /** Moves on and lets what is due, and what follows from it, run. */
  advance(ms: number): Promise<void>;
  /** Timers that were neither cancelled nor due yet. */
  pending(): number;
}

function createFakeClock(): FakeClock {
  let nowMs = 1000;
  const timers = new Map<object, { readonly atMs: number; readonly work: () => void }>();
  return {
    nowMs: () => nowMs,
    schedule: (delayMs, work) => {
      const id = {};
      timers.set(id, { atMs: nowMs + delayMs, work });
      return () => timers.delete(id);
    },
    advance: async (ms) => {
      // First everything comes to the point where it waits.
      await settle();
      nowMs += ms;
      for (const [id, { atMs, work }] of timers) {
        if (atMs <= nowMs && timers.delete(id)) work();
      }
      await settle();
    },
    pending: () => timers.size,
  };
}

interface Fake {
  readonly dependencies: AttemptDependencies;
  readonly clock: FakeClock;
  /** Attempt ids of the tries that were started, in order. */
  readonly started: string[];
}

const completed: HarnessOutcome = {
  status: "completed",
  finalText: "Done.",
  errorText: null,
  toolCalls: 1,
  toolErrors: 0,
  nativeSessionId: null,
};

/** Dependencies without processes. One attempt at a time asks for its sandbox right after its session. */
function createFake(script: Script): Fake {
  const started: string[] = [];
  const clock = createFakeClock();
  const attemptOf = new Map<string, string>();
  const current: Try[] = [];
  const silent = new Set<string>();
  const dependencies: AttemptDependencies = {
    sessions: {
      createSession: ({ attemptId = "" }) => {
        started.push(attemptId);
        const sessionId = asId<SessionId>(`ses-${started.length}`);
        attemptOf.set(sessionId, attemptId);
        const next = script(attemptId, started.filter((id) => id === attemptId).length);
        current.push(next);
        if (next.noCall !== undefined) silent.add(sessionId);
        return {
          sessionId,
          key: "secret-key",
          baseUrls: { openai: "", anthropic: "", google: "" },
        };
      },
      closeSession: async (sessionId) =>
        ({
          sessionId,
          calls: silent.has(sessionId) ? 0 : 2,
          sampledTokens: silent.has(sessionId) ? 0 : 7,
          limitHits: [],
          refusals: {},
          captureFailures: 0,
        }) as unknown as SessionInfo,
    },
    harness: {
      id: "fake",
      version: "1",
      prepare: async () => {},
      launch: () => ({ argv: ["fake"], env: {}, homeFiles: {}, readOnlyPaths: [] }),
      readOutcome: () => completed,
    } satisfies Harness,
    sandbox: {
      level: "process",
      create: async () => createInstance(current.shift() ?? {}),
    } satisfies Sandbox,
    verifiers: new Map([
      [
        "fake",
        {
          kind: "fake",
          verify: async ({ diff }): Promise<Verdict> => {
            const text = diff.changed.score ?? "1";
            const score = text === "null" ? null : Number(text);
            const failureClass: FailureClass = score === 1 ? "none" : "wrong-result";
            const evidence = [{ kind: "fake", passed: false, text: "velvet of 12: fail" }];
            return { verifier: "fake", score, failureClass, evidence };
          },
        },
      ],
    ]),
    clock,
    model: "m",
    contextTokens: 100,
    maxOutputTokens: 10,
    maxOutputBytes: 1000,
    wallClockMs: 1000,
    temperature: 1,
  };
  return { clock, dependencies, started };
}

function createInstance({ error, noCall, score = 1, wait }: Try): SandboxInstance {
  if (error !== undefined) throw error;
  return {
    level: "process",
    homeDir: "/home",
    workspaceDir: "/workspace",
    writeHomeFile: async () => {},
    run: async (_, runSignal) => {
      const stopped = new Promise<void>((resolve) => {
        runSignal.addEventListener("abort", () => resolve());
      });
      if (wait !== undefined) await Promise.race([wait, stopped]);
      const endedBy = runSignal.aborted ? "aborted" : "exit";
      const text = { stdout: "", stderr: noCall?.stderr ?? "", outputBytes: 0 };
      return {
        ...text,
        exitCode: noCall?.exitCode ?? 0,
        signal: null,
        endedBy,
        wallMs: 5,
        cpuMs: 4,
      };
    },
    diff: async () => ({ changed: { score: String(score) }, refused: [] }),
    [Symbol.asyncDispose]: async () => {},
  };
}

function optionsFor(
  fake: Fake,
  store: Store,
  change: Partial<CollectOptions> = {},
): CollectOptions {
  return { dependencies: fake.dependencies, store, concurrency: 1, training: true, ...change };
}

async function eventsOf(store: Store, kind: string): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const event of store.read({ kind })) found.push(event.data);
  return found;
}

/** Lets everything run that waits for no timer. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("collectGroups", () => {
  it("keeps the order of the plan and stores one end per attempt", async () => {
    const store = createMemoryStore();
    const fake = createFake((attemptId) => ({ score: attemptId.endsWith("/1") ? 0 : 1 }));
    const plans = [planOf("a", 2), planOf("b", 2)];
    const groups = await collectGroups(plans, optionsFor(fake, store, { concurrency: 3 }), signal);
    expect(groups.map(({ plan }) => plan)).toEqual(plans);
    expect(groups.map(({ records }) => records.map(({ attempt }) => attempt))).toEqual(
      plans.map(({ attempts }) => attempts),
    );
    expect(groups.flatMap(({ records }) => records.map(({ verdict }) => verdict.score))).toEqual([
      1, 0, 1, 0,
    ]);
    expect(await eventsOf(store, attemptEndKind)).toHaveLength(4);
  });

  it("does not run stored attempts again", async () => {
    const store = createMemoryStore();
    const plan = planOf("a", 3);
    const first = await collectGroups(
      [plan],
      optionsFor(
        createFake(() => ({})),
        store,
      ),
      signal,
    );
    const fake = createFake(() => ({ score: 0 }));
    const larger = planOf("a", 4);
    const seen: AttemptRecord[] = [];
    const again = await collectGroups(
      [larger],
      optionsFor(fake, store, { onAttempt: (record) => seen.push(record) }),
      signal,
    );
    expect(fake.started).toEqual([larger.attempts[3]?.attemptId]);
    expect(again[0]?.records.slice(0, 3)).toEqual(first[0]?.records);
    expect(seen).toHaveLength(4);
  });

  it("runs an infrastructure failure again and counts its tokens with its reason", async () => {
    const store = createMemoryStore();
    const fake = createFake((_, tries) => {
      if (tries === 1) return { error: new GimbalError("sandbox-failed", "No space.") };
      return tries === 2 ? { score: null } : {};
    });
    const reasons: string[] = [];
    const groups = await collectGroups(
      [planOf("a", 1)],
      optionsFor(fake, store, { onDiscard: ({ reason }) => reasons.push(reason) }),
      signal,
    );
    expect(groups[0]?.records.map(({ sessionId }) => sessionId)).toEqual(["ses-3"]);
    expect(reasons).toEqual(["sandbox-failed", "infrastructure"]);
    // The clock stands still here: the two discards must not fall together.
    expect(await eventsOf(store, attemptDiscardedKind)).toMatchObject([
      { sessionId: "ses-1", sampledTokens: 7, reason: "sandbox-failed" },
      { sessionId: "ses-2", sampledTokens: 7, reason: "infrastructure" },
    ]);
  });

  it("gives up after the last try, and stores no end", async () => {
    const store = createMemoryStore();
    const fake = createFake(() => ({ score: null }));
    const run = collectGroups([planOf("a", 1)], optionsFor(fake, store, { maxTries: 2 }), signal);
    await expect(run).rejects.toMatchObject({ code: "harness-failed" });
    expect(fake.started).toHaveLength(2);
    expect(await eventsOf(store, attemptEndKind)).toEqual([]);
  });

  it("says how a harness ended that never called the model, without the verifier's words", async () => {
    const store = createMemoryStore();
    const noCall = { exitCode: 3, stderr: "loading\nError: no such model (secret-key)\n\n" };
    const fake = createFake(() => ({ score: 0, noCall }));
    const logsDir = await mkdtemp(join(tmpdir(), "gimbal-rollout-"));
    try {
      const dependencies = { ...fake.dependencies, logsDir };
      const options = { ...optionsFor(fake, store), dependencies };
      const run = collectGroups([planOf("a", 1), planOf("b", 1)], options, signal);
      const error = (await run.catch((thrown: unknown) => thrown)) as GimbalError;
      expect(error.code).toBe("harness-failed");
      expect(error.message).toContain(
        "step-0001-0/a/0: the harness ended with exit code 3 before its first model call; last stderr line: Error: no such model ([session key])",
      );
      expect(error.message).toContain(
        `; log: ${join(logsDir, "step-0001-0_a_0", "stderr.log")}. Check`,
      );
      expect(error.message).not.toContain("velvet");
      expect(fake.started).toEqual(Array(3).fill("step-0001-0/a/0"));
    } finally {
      await rm(logsDir, { recursive: true, force: true });
    }
  });

  it("throws at once what another try would meet again, and counts its tokens", async () => {
    const codes = [
      "config-invalid",
      "invalid-request",
      "harness-missing",
      "model-invalid",
    ] as const;
    for (const code of codes) {
      const store = createMemoryStore();
      const fake = createFake(() => ({ error: new GimbalError(code, "wrong.") }));
      const run = collectGroups([planOf("a", 1)], optionsFor(fake, store), signal);
      await expect(run).rejects.toMatchObject({ code });
      expect(fake.started).toHaveLength(1);
      expect(await eventsOf(store, attemptDiscardedKind)).toMatchObject([{ reason: code }]);
    }
  });

  it("starts nothing when a task wants a verifier that is not there", async () => {
    const fake = createFake(() => ({}));
    const bad = planOf("b", 1);
    const task = { ...bad.task, verifier: { kind: "other", options: {} } };
    const run = collectGroups(
      [planOf("a", 1), { ...bad, task }],
      optionsFor(fake, createMemoryStore()),
      signal,
    );
    await expect(run).rejects.toMatchObject({
      code: "config-invalid",
      message: expect.stringContaining('verifier of kind "other"; known: fake'),
    });
    expect(fake.started).toEqual([]);
  });

  it("throws a programming mistake at once", async () => {
    const fake = createFake(() => ({}));
    const dependencies = {
      ...fake.dependencies,
      sessions: {
        ...fake.dependencies.sessions,
        createSession: (): never => {
          throw new TypeError("mistake");
        },
      },
    };
    const options = optionsFor({ ...fake, dependencies }, createMemoryStore());
    await expect(collectGroups([planOf("a", 1)], options, signal)).rejects.toThrow("mistake");
  });

  it("is aborted when it is stopped, also before it began", async () => {
    const run = collectGroups(
      [planOf("a", 1)],
      optionsFor(
        createFake(() => ({})),
        createMemoryStore(),
      ),
      AbortSignal.abort(),
    );
    await expect(run).rejects.toMatchObject({ code: "aborted" });
  });

  it("ends with the caller's reason when it is stopped, and keeps what was finished", async () => {
    const store = createMemoryStore();
    const stop = new AbortController();
    const fake = createFake((attemptId) =>
      attemptId.endsWith("/1") ? { wait: new Promise(() => {}) } : {},
    );
    const run = collectGroups(
      [planOf("a", 3)],
      optionsFor(fake, store, {
        onStage: ({ index }, stage) => {
          if (index === 1 && stage === "run")
            queueMicrotask(() => stop.abort(new GimbalError("aborted", "stopped.")));
        },
      }),
      stop.signal,
    );
    await expect(run).rejects.toMatchObject({ code: "aborted" });
    expect(await eventsOf(store, attemptEndKind)).toHaveLength(1);
    expect(await eventsOf(store, attemptDiscardedKind)).toEqual([]);
  });
});

describe("a group with a quorum and a deadline", () => {
  const never = new Promise<void>(() => {});

  it("leaves no timer behind, whether it ends well or not", async () => {
    for (const error of [undefined, new GimbalError("config-invalid", "wrong.")]) {
      const fake = createFake(() => (error === undefined ? {} : { error }));
      const options = { quorum: 0.5, groupDeadlineMs: 50 };
      const run = collectGroups(
        [planOf("a", 2)],
        optionsFor(fake, createMemoryStore(), options),
        signal,
      );
      await run.catch(() => undefined);
      expect(fake.started).not.toEqual([]);
      expect(fake.clock.pending()).toBe(0);
    }
  });

  it("is closed at the deadline when its quorum is in; what was cut is told", async () => {
    const store = createMemoryStore();
    const fake = createFake((attemptId) => (attemptId.endsWith("/2") ? { wait: never } : {}));
    const run = collectGroups(
      [planOf("a", 3)],
      optionsFor(fake, store, { concurrency: 3, quorum: 0.5, groupDeadlineMs: 50 }),
      signal,
    );
    await fake.clock.advance(49);
    expect(await eventsOf(store, attemptDiscardedKind)).toEqual([]);
    await fake.clock.advance(1);
    const [group] = await run;
    expect(group?.records.map(({ attempt }) => attempt.index)).toEqual([0, 1]);
    expect(group?.missing).toBe(1);
    expect(await eventsOf(store, attemptDiscardedKind)).toMatchObject([
      { reason: "group-deadline", sampledTokens: 7, attempt: { index: 2 } },
    ]);
  });

  it("waits past the deadline until its quorum is in", async () => {
    let finish = (): void => {};
    const slow = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const fake = createFake((attemptId) => {
      if (attemptId.endsWith("/0")) return {};
      return { wait: attemptId.endsWith("/1") ? slow : never };
    });
    let isDone = false;
    const run = collectGroups(
      [planOf("a", 3)],
      optionsFor(fake, createMemoryStore(), { concurrency: 3, quorum: 0.6, groupDeadlineMs: 50 }),
      signal,
    ).finally(() => {
      isDone = true;
    });
    await fake.clock.advance(500);
    expect(isDone).toBe(false);
    finish();
    const [group] = await run;
    expect(group?.records.map(({ attempt }) => attempt.index)).toEqual([0, 1]);
    expect(group?.missing).toBe(1);
  });

  it("has no deadline when all attempts must be in", async () => {
    let finish = (): void => {};
    const slow = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const fake = createFake((attemptId) => (attemptId.endsWith("/1") ? { wait: slow } : {}));
    const run = collectGroups(
      [planOf("a", 2)],
      optionsFor(fake, createMemoryStore(), { concurrency: 2, groupDeadlineMs: 50 }),
      signal,
    );
    await fake.clock.advance(1000);
    finish();
    const [group] = await run;
    expect(group?.records).toHaveLength(2);
    expect(group?.missing).toBe(0);
  });
});

describe("planGroup", () => {
  it("gives the same ids and seeds again, and others for another label, task or run", () => {
    const policyVersion = asId<PolicyVersion>("step-0");
    const plan = (label: string, name: string, runSeed: number): ReturnType<typeof planGroup> =>
      planGroup({ label, task: taskNamed(name), size: 4, runSeed, policyVersion });
    expect(plan("x", "a", 1)).toEqual(plan("x", "a", 1));
    const all = [plan("x", "a", 1), plan("y", "a", 1), plan("x", "b", 1), plan("x", "a", 2)];
    const seeds = all.flatMap(({ attempts }) => attempts.map(({ seed }) => seed));
    expect(new Set(seeds).size).toBe(16);
    const ids = all.slice(0, 3).flatMap(({ attempts }) => attempts.map((one) => one.attemptId));
    expect(new Set(ids).size).toBe(12);
  });
});
