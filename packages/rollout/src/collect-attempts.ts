/**
 * Runs a plan of attempts with bounded concurrency, reruns infrastructure failures, and stores each finished attempt.
 *
 * Laws: a planned attempt has at most one `attempt-end` event, whatever was killed when; attempts that have one are
 * not run again; a group is closed when its quorum is in and its deadline passed, or when all are in.
 */
import {
  type Attempt,
  type AttemptId,
  asId,
  type CapturedCall,
  GimbalError,
  type GroupId,
  hashToSeed,
  isRetryable,
  type PolicyVersion,
  type SessionId,
  type Store,
  type Task,
  throwIfAborted,
} from "@gimbal-rl/core";
import {
  type AttemptRecord,
  attemptDiscardedKind,
  attemptEndKind,
  type DiscardedTry,
} from "./attempt-record.js";
import {
  type AttemptDependencies,
  type AttemptStage,
  requireVerifier,
  runAttempt,
  type SessionHost,
} from "./attempt-runner.js";
import { mapPooled } from "./pool.js";

/** A task and its attempts, in order of index. */
export interface PlannedGroup {
  readonly groupId: GroupId;
  readonly task: Task;
  readonly attempts: readonly Attempt[];
}

/**
 * Plans the attempts at one task. Ids and seeds derive from the label, the task and the index alone, so a resumed run
 * plans the same ones.
 */
export function planGroup(options: {
  /** Names the use: `step-0003`, `eval-before`. */
  readonly label: string;
  readonly task: Task;
  readonly size: number;
  readonly runSeed: number;
  readonly policyVersion: PolicyVersion;
  /** Stands for the label in seeds, so that two uses draw alike. Default: the label. */
  readonly seedLabel?: string;
}): PlannedGroup {
  const { label, policyVersion, runSeed, seedLabel = label, size, task } = options;
  const groupId = asId<GroupId>(`${label}/${task.taskId}`);
  const attempts = Array.from({ length: size }, (_, index): Attempt => {
    const attemptId = asId<AttemptId>(`${groupId}/${index}`);
    const seed = hashToSeed("attempt", runSeed, seedLabel, task.taskId, index);
    return { attemptId, taskId: task.taskId, groupId, index, seed, policyVersion };
  });
  return { groupId, task, attempts };
}

/** How groups are collected. */
export interface CollectOptions {
  readonly dependencies: AttemptDependencies;
  readonly store: Store;
  /** Attempts that run at once. */
  readonly concurrency: number;
  /** Whether calls are trained on (sampling is then controlled by the run). */
  readonly training: boolean;
  /** Tries per attempt when the infrastructure fails. Default 3. */
  readonly maxTries?: number;
  /** Share of a group that must be in before its deadline may close it. Default 1: all attempts. */
  readonly quorum?: number;
  /** From the group's first attempt; with a quorum below 1, attempts still running then are aborted. */
  readonly groupDeadlineMs?: number;
  readonly onAttempt?: (record: AttemptRecord, done: number, total: number) => void;
  readonly onStage?: (attempt: Attempt, stage: AttemptStage) => void;
  readonly onDiscard?: (discarded: DiscardedTry) => void;
}

/** A collected group. `missing` counts attempts that the deadline cut. */
export interface CollectedGroup {
  readonly plan: PlannedGroup;
  readonly records: readonly AttemptRecord[];
  readonly missing: number;
}

/**
 * Collects all groups; results keep the order of the plan.
 * @throws {GimbalError} the last infrastructure failure when an attempt failed `maxTries` times; at once what another
 * try would meet again (`config-invalid`, `invalid-request`, `harness-missing`, ...: see `isRetryable`); `aborted`.
 */
export async function collectGroups(
  plans: readonly PlannedGroup[],
  options: CollectOptions,
  signal: AbortSignal,
): Promise<CollectedGroup[]> {
  for (const { task } of plans) requireVerifier(options.dependencies, task);
  const state = plans.map((plan) => createGroupState(plan, options));
  const jobs = plans.flatMap((plan, group) =>
    plan.attempts.map((attempt) => ({ attempt, task: plan.task, group })),
  );
  let done = 0;
  const run = (): Promise<(AttemptRecord | null)[]> =>
    mapPooled(jobs, options.concurrency, async ({ attempt, group, task }) => {
      const groupState = state[group];
      if (groupState === undefined) throw new RangeError(`No group ${group}.`);
      const record = await collectOne(attempt, task, options, groupState, signal);
      done += 1;
      if (record !== null) {
        groupState.finished();
        options.onAttempt?.(record, done, jobs.length);
      }
      return record;
    });
  const records = await run().finally(() => {
    for (const one of state) one.stop();
  });
  return plans.map((plan, group) => {
    const own = records.filter((_, job) => jobs[job]?.group === group);
    const finished = own.filter((record) => record !== null);
    return { plan, records: finished, missing: own.length - finished.length };
  });
}

interface GroupState {
  readonly deadline: AbortSignal;
  started(): void;
  finished(): void;
  stop(): void;
}

function createGroupState(plan: PlannedGroup, options: CollectOptions): GroupState {
  const controller = new AbortController();
  const { groupDeadlineMs, quorum = 1 } = options;
  // The small subtrahend keeps 0.07 * 100 = 7.000000000000001 at 7.
  const needed = Math.ceil(quorum * plan.attempts.length - 1e-9);
  let finished = 0;
  let late = false;
  const { clock } = options.dependencies;
  let cancel: (() => void) | null = null;
  const closeIfDue = (): void => {
    if (late && finished >= needed) controller.abort();
  };
  return {
    deadline: controller.signal,
    started: () => {
      if (groupDeadlineMs === undefined || quorum >= 1 || cancel !== null) return;
      cancel = clock.schedule(groupDeadlineMs, () => {
        late = true;
        closeIfDue();
      });
    },
    finished: () => {
      finished += 1;
      closeIfDue();
    },
    stop: () => cancel?.(),
  };
}

async function collectOne(
  attempt: Attempt,
  task: Task,
  options: CollectOptions,
  group: GroupState,
  signal: AbortSignal,
): Promise<AttemptRecord | null> {
  const { maxTries = 3, store, training } = options;
  const stored = await store.get(attemptEndKind, attempt.attemptId);
  if (stored !== null) return stored.data as AttemptRecord;
  group.started();
  const either = AbortSignal.any([signal, group.deadline]);
  for (let tries = 1; ; tries += 1) {
    throwIfAborted(signal);
    if (group.deadline.aborted) return null;
    let failure: unknown;
    // A try that ends in an exception leaves no record; what its session sampled is counted all the same.
    const { session, dependencies } = watchSession(options.dependencies);
    const discard = async (reason: string): Promise<void> => {
      const discarded: DiscardedTry = { attempt, ...session, reason };
      const key = `${attempt.attemptId}~${dependencies.clock.nowMs()}-${tries}`;
      await store.append(attemptDiscardedKind, key, discarded);
      options.onDiscard?.(discarded);
    };
    try {
      const onStage = (stage: AttemptStage): void => options.onStage?.(attempt, stage);
      const record = await runAttempt(dependencies, task, attempt, training, either, onStage);
      if (record.verdict.score !== null) {
        await store.append(attemptEndKind, attempt.attemptId, record);
        return record;
      }
      const words = [record.outcome.errorText, ...record.verdict.evidence.map((one) => one.text)];
      failure = new GimbalError(
        "harness-failed",
        `Attempt ${attempt.attemptId} was not scored (${record.failureClass}): ${words.filter((text) => text !== null && text !== "").join("; ") || "no reason given"}.`,
        { boundary: "harness" },
      );
      await discard(record.failureClass);
    } catch (error) {
      throwIfAborted(signal);
      if (group.deadline.aborted) {
        await discard("group-deadline");
        return null;
      }
      if (!GimbalError.is(error)) throw error;
      failure = error;
      await discard(error.code);
    }
    if (tries >= maxTries || !isRetryable(failure)) throw failure;
  }
}

/** The dependencies with an eye on the session that a try opens. */
function watchSession(dependencies: AttemptDependencies): {
  readonly session: Readonly<Pick<DiscardedTry, "sessionId" | "sampledTokens">>;
  readonly dependencies: AttemptDependencies;
} {
  const session: { sessionId: SessionId | null; sampledTokens: number } = {
    sessionId: null,
    sampledTokens: 0,
  };
  const { sessions } = dependencies;
  const watched: SessionHost = {
    createSession: async (spec) => {
      const grant = await sessions.createSession(spec);
      session.sessionId = grant.sessionId;
      return grant;
    },
    closeSession: async (sessionId) => {
      const info = await sessions.closeSession(sessionId);
      session.sampledTokens = info.sampledTokens;
      return info;
    },
  };
  return { session, dependencies: { ...dependencies, sessions: watched } };
}

/**
 * The captured calls of the sessions wanted, in order of arrival.
 * @param after - Sequence of an event that came before all of them; what is older is not read.
 */
export async function loadCalls(
  store: Store,
  sessionIds: ReadonlySet<string>,
  after = 0,
): Promise<Map<string, CapturedCall[]>> {
  const calls = new Map<string, CapturedCall[]>();
  for (const sessionId of sessionIds) calls.set(sessionId, []);
  for await (const event of store.read({ kind: "call-end", after })) {
    const call = event.data as CapturedCall;
    calls.get(call.sessionId)?.push(call);
  }
  for (const list of calls.values()) list.sort((a, b) => a.index - b.index);
  return calls;
}
