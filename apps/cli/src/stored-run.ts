/**
 * Reads a run folder as it lies on disk, finished or not. Nothing is written.
 *
 * Law: calls are streamed; those of an attempt are held only until the attempt is complete.
 */
import { statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type CapturedCall,
  type FidelityReport,
  GimbalError,
  type Store,
  type StoredEvent,
} from "@gimbal-rl/core";
import { mergeFidelity } from "@gimbal-rl/graph";
import {
  type AttemptRecord,
  attemptDiscardedKind,
  attemptEndKind,
  buildAttemptTrajectory,
  type DiscardedTry,
} from "@gimbal-rl/rollout";
import { phaseOf } from "@gimbal-rl/run";
import { isRunFolder, type RunManifest, readRunFolder } from "@gimbal-rl/sdk";
import { openStore } from "@gimbal-rl/store";

/** A finished attempt and where it is stored. */
export interface StoredAttempt {
  readonly key: string;
  readonly record: AttemptRecord;
}

/** An open run. */
export interface StoredRun {
  readonly runDir: string;
  /** Null for a folder of attempts without training (`gimbal rollout`, `gimbal eval`, `gimbal proxy --store`). */
  readonly manifest: RunManifest | null;
  readonly store: Store;
  readonly attempts: readonly StoredAttempt[];
  readonly discarded: readonly DiscardedTry[];
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Opens a run for reading, beside a running writer too.
 * @param runDir - Absolute path.
 * @throws {GimbalError} `not-found`, `config-invalid`, `store-corrupt`.
 */
export async function openStoredRun(runDir: string): Promise<StoredRun> {
  if (statSync(runDir, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new GimbalError(
      "not-found",
      `${runDir} is not a folder. Give the folder of a run, for example runs/demo-1-....`,
    );
  }
  const manifest = (await isRunFolder(runDir)) ? (await readRunFolder(runDir)).manifest : null;
  const store = await openStore(runDir, { readOnly: true });
  try {
    const attempts: StoredAttempt[] = [];
    for await (const { data, key } of store.read({ kind: attemptEndKind })) {
      attempts.push({ key, record: data as AttemptRecord });
    }
    const discarded: DiscardedTry[] = [];
    for await (const { data } of store.read({ kind: attemptDiscardedKind })) {
      discarded.push(data as DiscardedTry);
    }
    return {
      ...{ runDir, manifest, store, attempts, discarded },
      [Symbol.asyncDispose]: () => store.close(),
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** Calls of one session, in order of arrival. `attempt` is null for sessions no finished attempt names. */
export interface SessionCalls {
  readonly sessionId: string;
  readonly attempt: StoredAttempt | null;
  readonly calls: readonly CapturedCall[];
  /** True for calls beyond those the attempt counted; the others were given before. */
  readonly isSurplus: boolean;
}

/**
 * Streams calls grouped by session: a finished attempt as soon as all its calls were met, the rest at the end.
 * @param onEvent - Sees every stored call first.
 */
export async function* readSessions(
  { attempts, store }: Pick<StoredRun, "attempts" | "store">,
  onEvent: (event: StoredEvent) => void | Promise<void> = () => {},
): AsyncGenerator<SessionCalls> {
  const attemptOf = new Map(
    attempts.map((attempt) => [attempt.record.sessionId as string, attempt]),
  );
  const pending = new Map<string, CapturedCall[]>();
  const toSession = (sessionId: string, calls: CapturedCall[]): SessionCalls => ({
    sessionId,
    attempt: attemptOf.get(sessionId) ?? null,
    calls: calls.sort((a, b) => a.index - b.index),
    isSurplus: given.has(sessionId),
  });
  const given = new Set<string>();
  for await (const event of store.read({ kind: "call-end" })) {
    await onEvent(event);
    const call = event.data as CapturedCall;
    const calls = pending.get(call.sessionId) ?? [];
    pending.set(call.sessionId, calls);
    calls.push(call);
    const attempt = attemptOf.get(call.sessionId);
    if (attempt === undefined || calls.length < attempt.record.calls) continue;
    // A session is given once; calls beyond its count come at the end and are a finding of their own.
    if (given.has(call.sessionId)) continue;
    pending.delete(call.sessionId);
    yield toSession(call.sessionId, calls);
    given.add(call.sessionId);
  }
  for (const [sessionId, calls] of pending) yield toSession(sessionId, calls);
  for (const attempt of attempts) {
    const { sessionId } = attempt.record;
    if (!given.has(sessionId) && !pending.has(sessionId)) yield toSession(sessionId, []);
  }
}

/** The fidelity of every phase, from the attempts whose calls are there. */
export async function phaseFidelity(run: StoredRun): Promise<ReadonlyMap<string, FidelityReport>> {
  const reports = new Map<string, FidelityReport[]>();
  for await (const { attempt, calls, isSurplus } of readSessions(run)) {
    if (attempt === null || isSurplus) continue;
    const phase = phaseOf(attempt.record.attempt.attemptId);
    const list = reports.get(phase) ?? [];
    reports.set(phase, list);
    list.push(buildAttemptTrajectory(attempt.record, calls).fidelity);
  }
  return new Map([...reports].map(([phase, list]) => [phase, mergeFidelity(list)]));
}

/** A JSON file of the run; null when it is not there. @throws {GimbalError} `config-invalid` when it is not JSON. */
export async function readRunJson(runDir: string, name: string): Promise<unknown> {
  const path = join(runDir, name);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch {
    return null;
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new GimbalError("config-invalid", `${path} is not valid JSON. Remove it or restore it.`, {
      cause: error,
    });
  }
}
