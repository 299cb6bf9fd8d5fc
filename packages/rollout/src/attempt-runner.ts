/**
 * One attempt: workspace, session, harness, diff, verdict.
 *
 * Law: a failing agent gives a record with a verdict; only a failure of our own machinery is an exception, and then
 * nothing of the attempt is trained.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type Attempt,
  attributeError,
  type Clock,
  type Harness,
  type Sandbox,
  type SessionId,
  type Task,
  type Verdict,
  type Verifier,
  type WorkspaceDiff,
} from "@gimbal-rl/core";
import { type HarnessRun, runHarness } from "@gimbal-rl/harness";
import type { SessionGrant, SessionInfo, SessionSpec } from "@gimbal-rl/proxy";
import type { AttemptRecord } from "./attempt-record.js";
import { classifyAttempt } from "./classify-attempt.js";

/** The part of the gateway that an attempt needs; `Gateway` of `@gimbal-rl/proxy` is one. */
export interface SessionHost {
  createSession(spec: SessionSpec): SessionGrant | Promise<SessionGrant>;
  closeSession(sessionId: SessionId): Promise<SessionInfo>;
}

/** What every attempt of a run shares. */
export interface AttemptDependencies {
  readonly sessions: SessionHost;
  readonly harness: Harness;
  readonly sandbox: Sandbox;
  readonly verifiers: ReadonlyMap<string, Verifier>;
  readonly clock: Clock;
  /** Model name on the wire. */
  readonly model: string;
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  readonly maxOutputBytes: number;
  /** Wall clock of an attempt whose task sets none. */
  readonly wallClockMs: number;
  readonly temperature: number;
  /** Folder in which what a harness printed is kept, one folder per attempt that did not reach the full score. */
  readonly logsDir?: string;
}

/** Called while an attempt moves on; for progress lines. */
export type AttemptStage = "start" | "run" | "grade" | "end";

/**
 * Runs one attempt to its end.
 * @throws {GimbalError} with boundary `sandbox`, `verifier`, `capture` or `upstream`: an infrastructure failure, to be
 * run again.
 */
export async function runAttempt(
  dependencies: AttemptDependencies,
  task: Task,
  attempt: Attempt,
  training: boolean,
  signal: AbortSignal,
  onStage: (stage: AttemptStage) => void = () => {},
): Promise<AttemptRecord> {
  const { clock, harness, sandbox, sessions } = dependencies;
  const startedAtMs = clock.nowMs();
  onStage("start");
  const grant = await sessions.createSession({
    attemptId: attempt.attemptId,
    taskId: task.taskId,
    seed: attempt.seed,
    training,
    sampling: { temperature: dependencies.temperature, topP: 1, topK: 0 },
    budgets: task.budgets,
    labels: { harness: harness.id, family: task.family },
  });
  const logsDir =
    dependencies.logsDir === undefined
      ? null
      : join(dependencies.logsDir, attempt.attemptId.replace(/[^A-Za-z0-9._-]+/g, "_"));
  let ran: HarnessRun;
  let diff: WorkspaceDiff;
  let runStartedAtMs = startedAtMs;
  let runEndedAtMs = startedAtMs;
  let info: SessionInfo;
  try {
    await using instance = await sandbox.create({
      files: task.files,
      homeFiles: {},
      readOnlyPaths: [],
    });
    onStage("run");
    runStartedAtMs = clock.nowMs();
    ran = await runHarness({
      harness,
      sandboxInstance: instance,
      spec: {
        instruction: task.instruction,
        model: dependencies.model,
        baseUrls: grant.baseUrls,
        key: grant.key,
        contextTokens: dependencies.contextTokens,
        maxOutputTokens: dependencies.maxOutputTokens,
      },
      budgets: { wallClockMs: dependencies.wallClockMs, ...task.budgets },
      maxOutputBytes: dependencies.maxOutputBytes,
      signal,
      ...(logsDir === null ? {} : { logsDir }),
    });
    runEndedAtMs = clock.nowMs();
    signal.throwIfAborted();
    diff = await instance.diff();
  } catch (error) {
    throw attributeError(error, "sandbox-failed", "sandbox", `Attempt ${attempt.attemptId}`);
  } finally {
    info = await sessions.closeSession(grant.sessionId);
  }
  onStage("grade");
  const gradingStartedAtMs = clock.nowMs();
  const verdict = await judge(dependencies, task, diff, signal);
  const gradingEndedAtMs = clock.nowMs();
  const { failureClass, score } = classifyAttempt({ ...ran, info, verdict });
  if (score === 1 && logsDir !== null) await rm(logsDir, { recursive: true, force: true });
  onStage("end");
  return {
    attempt,
    sessionId: grant.sessionId,
    verdict: { ...verdict, score, failureClass },
    failureClass,
    outcome: ran.outcome,
    sandboxLevel: sandbox.level,
    calls: info.calls,
    sampledTokens: info.sampledTokens,
    seconds: {
      harness: (ran.exit.cpuMs ?? ran.exit.wallMs) / 1000,
      tools: (runStartedAtMs - startedAtMs + gradingStartedAtMs - runEndedAtMs) / 1000,
      grading: (gradingEndedAtMs - gradingStartedAtMs) / 1000,
      wall: ran.exit.wallMs / 1000,
    },
  };
}

async function judge(
  dependencies: AttemptDependencies,
  task: Task,
  diff: WorkspaceDiff,
  signal: AbortSignal,
): Promise<Verdict> {
  const verifier = dependencies.verifiers.get(task.verifier.kind);
  if (verifier === undefined) {
    return {
      verifier: task.verifier.kind,
      score: null,
      failureClass: "infrastructure",
      evidence: [
        {
          kind: "configuration",
          passed: false,
          text: `No verifier of kind "${task.verifier.kind}"; known: ${[...dependencies.verifiers.keys()].join(", ")}.`,
        },
      ],
    };
  }
  try {
    return await verifier.verify({ task, diff, sandbox: dependencies.sandbox }, signal);
  } catch (error) {
    throw attributeError(error, "verifier-failed", "verifier", `Verifier ${verifier.kind}`);
  }
}
