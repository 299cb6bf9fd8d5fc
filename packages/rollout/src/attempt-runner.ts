/**
 * One attempt: workspace, session, harness, diff, verdict.
 *
 * Law: a failing agent gives a record with a verdict; only a failure of our own machinery is an exception, and then
 * nothing of the attempt is trained. A harness that never called the model is such a failure.
 */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  type Attempt,
  attributeError,
  GimbalError,
  type Harness,
  type Sandbox,
  type SessionId,
  type Task,
  type TimerClock,
  throwIfAborted,
  type Verdict,
  type Verifier,
  type VerifyInput,
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
  readonly clock: TimerClock;
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

/** How far an attempt has come; for progress lines. */
export type AttemptStage = "start" | "run" | "grade" | "end";

/**
 * Runs one attempt to its end.
 * @param onStage - Called when the attempt comes to a stage.
 * @throws {GimbalError} with boundary `sandbox`, `verifier`, `capture` or `upstream`: an infrastructure failure, to be
 * run again when `isRetryable` says so; `harness-failed` when the harness ended before its first model call;
 * `config-invalid` when the task's verifier is not known; `aborted`.
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
  const verifier = requireVerifier(dependencies, task);
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
    throwIfAborted(signal);
    diff = await instance.diff();
  } catch (error) {
    throw attributeError(error, "sandbox-failed", "sandbox", `Attempt ${attempt.attemptId}`);
  } finally {
    info = await sessions.closeSession(grant.sessionId);
  }
  onStage("grade");
  const gradingStartedAtMs = clock.nowMs();
  const verdict = await judge(verifier, { task, diff, sandbox }, signal);
  const gradingEndedAtMs = clock.nowMs();
  const { failureClass, score } = classifyAttempt({ ...ran, info, verdict });
  // Nothing of the agent is in this workspace: what the verifier says about it would only hide the cause.
  if (score === null && info.calls === 0 && info.captureFailures === 0) {
    const said = noCallText(ran, info, logsDir).replaceAll(grant.key, "[session key]");
    throw new GimbalError("harness-failed", `Attempt ${attempt.attemptId}: ${said}`, {
      boundary: "harness",
    });
  }
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

/** Characters kept of what a harness said last. */
const shownCharacters = 300;

function lastLine(text: string): string | null {
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  return lines.findLast((line) => line !== "")?.slice(0, shownCharacters) ?? null;
}

/** Why a harness came to no model call, as far as it shows, and what to do. */
function noCallText(
  { exit, outcome }: HarnessRun,
  { refusals }: SessionInfo,
  logsDir: string | null,
): string {
  const end = exit.signal === null ? `exit code ${exit.exitCode}` : `signal ${exit.signal}`;
  const refused = Object.entries(refusals).map(([code, count]) => `${code} ${count}`);
  const stderr = lastLine(exit.stderr);
  const stdout = lastLine(exit.stdout);
  const words = [
    refused.length === 0
      ? `the harness ended with ${end} before its first model call`
      : `the harness ended with ${end} and no model call was answered; the gateway refused: ${refused.join(", ")}`,
  ];
  if (stderr !== null) words.push(`last stderr line: ${stderr}`);
  else if (outcome.errorText !== null && outcome.errorText !== `exit code ${exit.exitCode}`)
    words.push(`it says: ${outcome.errorText.slice(0, shownCharacters)}`);
  else if (stdout !== null) words.push(`last stdout line: ${stdout}`);
  if (logsDir !== null)
    words.push(`log: ${join(logsDir, stderr === null ? "stdout.log" : "stderr.log")}`);
  return `${words.join("; ")}. Check that the harness starts by itself and calls the base URL and key it is given, then run again.`;
}

async function judge(
  verifier: Verifier,
  input: VerifyInput,
  signal: AbortSignal,
): Promise<Verdict> {
  try {
    return await verifier.verify(input, signal);
  } catch (error) {
    throw attributeError(error, "verifier-failed", "verifier", `Verifier ${verifier.kind}`);
  }
}

/**
 * The verifier of a task.
 * @throws {GimbalError} `config-invalid` when the registry has none of its kind.
 */
export function requireVerifier(
  { verifiers }: Pick<AttemptDependencies, "verifiers">,
  task: Task,
): Verifier {
  const verifier = verifiers.get(task.verifier.kind);
  if (verifier !== undefined) return verifier;
  throw new GimbalError(
    "config-invalid",
    `Task ${task.taskId} wants a verifier of kind "${task.verifier.kind}"; known: ${[...verifiers.keys()].join(", ")}. Correct its verifier.kind, or add the verifier to the registry.`,
    { boundary: "verifier", details: { taskId: task.taskId, kind: task.verifier.kind } },
  );
}
