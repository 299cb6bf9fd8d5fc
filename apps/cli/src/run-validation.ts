/**
 * Stored run -> graded findings: calls, trajectories, blobs, exactly-once rules, steps against checkpoints.
 *
 * Law: nothing that would train wrongly, or was lost or counted twice, passes without a fatal finding.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type BlobId,
  type CapturedCall,
  GimbalError,
  type StoredEvent,
  throwIfAborted,
} from "@gimbal-rl/core";
import { validateCall } from "@gimbal-rl/graph";
import { buildAttemptTrajectory, type PlannedGroup } from "@gimbal-rl/rollout";
import { phaseOf, stepLabel, stepPlanKind, toStepReport } from "@gimbal-rl/run";
import { findCheckpoints, readMetrics } from "@gimbal-rl/trainer";
import { Findings } from "./run-findings.js";
import { readSessions, type SessionCalls, type StoredRun } from "./stored-run.js";

/** What was looked at. */
export interface ValidationCounts {
  events: number;
  calls: number;
  blobs: number;
  attempts: number;
  discarded: number;
  trajectories: number;
  branches: number;
  sampledTokens: number;
  trainedTokens: number;
  steps: number;
  checkpoints: number;
}

/** The result. */
export interface Validation {
  readonly counts: Readonly<ValidationCounts>;
  readonly findings: Findings;
}

/** Sums of one step's training attempts, recomputed from its calls. */
interface StepSums {
  sampledTokens: number;
  trainedTokens: number;
}

/** How validation is run. */
export interface ValidateOptions {
  /** Reads every blob and compares it with its address. */
  readonly blobs: boolean;
  readonly signal: AbortSignal;
  /** Sessions looked at so far. */
  readonly onProgress?: (sessions: number) => void;
}

/** Validates. @throws {GimbalError} `store-corrupt`, `aborted`. */
export async function validateRun(run: StoredRun, options: ValidateOptions): Promise<Validation> {
  const { onProgress, signal } = options;
  const findings = new Findings();
  const counts: ValidationCounts = {
    events: 0,
    calls: 0,
    blobs: 0,
    attempts: run.attempts.length,
    discarded: run.discarded.length,
    trajectories: 0,
    branches: 0,
    sampledTokens: 0,
    trainedTokens: 0,
    steps: 0,
    checkpoints: 0,
  };
  await checkLog(run, counts, findings);
  checkAttempts(run, findings);
  const vocabularySize = await readVocabularySize(run.runDir);
  const grading = {
    ...(vocabularySize === null ? {} : { vocabularySize }),
    ...(run.manifest === null ? {} : { temperature: run.manifest.config.temperature }),
  };
  const discardedSessions = new Set(
    run.discarded.map(({ sessionId }) => sessionId as string | null),
  );
  const sums = new Map<string, StepSums>();
  let rewriting = 0;
  const onCall = async ({ data, key }: StoredEvent): Promise<void> => {
    throwIfAborted(signal);
    const call = data as CapturedCall;
    counts.calls += 1;
    if (call.callId !== key) {
      findings.add("fatal", "wrong-key", key, `the record is of call ${call.callId}`);
    }
    for (const { code, level, message } of validateCall(call, grading)) {
      // Pi does this in nearly every call and loses nothing by it: one line with the count says as much.
      if (code === "rewritten-arguments") rewriting += 1;
      else findings.add(level, code, call.callId, message);
    }
    if (options.blobs) await checkBlobs(run, call, counts, findings);
  };
  let sessions = 0;
  for await (const session of readSessions(run, onCall)) {
    sessions += 1;
    onProgress?.(sessions);
    checkSession(session, discardedSessions, findings);
    addTrajectory(session, counts, sums, findings);
  }
  if (rewriting > 0) {
    const text = `in ${rewriting} of ${counts.calls} calls the harness had rewritten the argument text of earlier calls`;
    findings.add("info", "rewritten-arguments", "run", text);
  }
  await checkSteps(run, sums, counts, findings);
  return { counts, findings };
}

async function checkLog(
  { store }: StoredRun,
  counts: ValidationCounts,
  findings: Findings,
): Promise<void> {
  const keys = new Set<string>();
  for await (const { key, kind, sequence } of store.read()) {
    counts.events += 1;
    if (sequence !== counts.events) {
      findings.add("fatal", "sequence-gap", `event ${sequence}`, `expected event ${counts.events}`);
      counts.events = sequence;
    }
    const id = `${kind} ${key}`;
    if (keys.has(id)) findings.add("fatal", "duplicate-event", id, "stored twice");
    keys.add(id);
  }
}

function checkAttempts({ attempts, discarded }: StoredRun, findings: Findings): void {
  const sessions = new Map<string, string>();
  for (const { key, record } of attempts) {
    const { attemptId } = record.attempt;
    if (attemptId !== key) {
      findings.add("fatal", "wrong-key", key, `the record is of attempt ${attemptId}`);
    }
    const other = sessions.get(record.sessionId);
    if (other !== undefined) {
      findings.add(
        "fatal",
        "session-shared",
        key,
        `session ${record.sessionId} is also ${other}'s`,
      );
    }
    sessions.set(record.sessionId, key);
    if (record.verdict.score === null) {
      findings.add("fatal", "unscored", key, "a finished attempt has no score");
    }
  }
  for (const { attempt, sessionId } of discarded) {
    if (sessionId !== null && sessions.has(sessionId)) {
      const message = `session ${sessionId} is both finished and discarded`;
      findings.add("fatal", "counted-twice", attempt.attemptId, message);
    }
  }
}

/** The vocabulary of the run's model; null when no checkpoint tells. */
async function readVocabularySize(runDir: string): Promise<number | null> {
  try {
    const text = await readFile(join(runDir, "checkpoints", "0", "config.json"), "utf8");
    const size = (JSON.parse(text) as { vocab_size?: unknown }).vocab_size;
    return typeof size === "number" ? size : null;
  } catch {
    return null;
  }
}

async function checkBlobs(
  { store }: StoredRun,
  call: CapturedCall,
  counts: ValidationCounts,
  findings: Findings,
): Promise<void> {
  const blobs: readonly (readonly [name: string, id: BlobId | null])[] = [
    ["request", call.requestBlob],
    ["response", call.responseBlob],
  ];
  for (const [name, id] of blobs) {
    if (id === null) {
      findings.add("warn", "no-raw-body", call.callId, `the raw ${name} was not stored`);
      continue;
    }
    try {
      await store.getBlob(id);
      counts.blobs += 1;
    } catch (error) {
      if (!GimbalError.is(error)) throw error;
      const code = error.code === "not-found" ? "blob-missing" : "blob-damaged";
      findings.add("fatal", code, call.callId, `raw ${name} ${id}: ${error.message}`);
    }
  }
}

function checkSession(
  { attempt, calls, isSurplus, sessionId }: SessionCalls,
  discardedSessions: ReadonlySet<string | null>,
  findings: Findings,
): void {
  if (attempt === null) {
    if (discardedSessions.has(sessionId)) return;
    const tokens = calls.reduce((sum, call) => sum + call.sampledIds.length, 0);
    const message = `${calls.length} calls, ${tokens} sampled tokens of no finished attempt (stopped in the middle, or not an attempt)`;
    findings.add("info", "unfinished-session", sessionId, message);
    return;
  }
  const { record } = attempt;
  if (isSurplus) {
    const message = `${calls.length} calls beyond the ${record.calls} of the attempt`;
    findings.add("fatal", "extra-calls", attempt.key, message);
    return;
  }
  if (calls.length !== record.calls) {
    const message = `${calls.length} calls are stored, the attempt made ${record.calls}`;
    findings.add("fatal", "missing-calls", attempt.key, message);
    return;
  }
  const gap = calls.findIndex((call, i) => call.index !== i);
  if (gap >= 0) {
    findings.add("fatal", "call-order", attempt.key, `no call has place ${gap} in the session`);
  }
  const sampled = calls.reduce((sum, call) => sum + call.sampledIds.length, 0);
  if (sampled !== record.sampledTokens) {
    const message = `the calls hold ${sampled} sampled tokens, the attempt counted ${record.sampledTokens}`;
    findings.add("fatal", "token-count", attempt.key, message);
  }
}

function addTrajectory(
  { attempt, calls, isSurplus }: SessionCalls,
  counts: ValidationCounts,
  sums: Map<string, StepSums>,
  findings: Findings,
): void {
  if (attempt === null || isSurplus || calls.length === 0) return;
  const { key, record } = attempt;
  try {
    const { branches, fidelity } = buildAttemptTrajectory(record, calls);
    counts.trajectories += 1;
    counts.branches += branches.length;
    counts.sampledTokens += fidelity.sampledTokens;
    counts.trainedTokens += fidelity.trainedTokens;
    for (const { reason, tokens } of fidelity.leftOut) {
      findings.add("warn", "left-out", key, `${tokens} sampled tokens: ${reason}`);
    }
    const forked = fidelity.links.forked ?? 0;
    if (forked > 0) findings.add("info", "forked", key, `${forked} calls left their history`);
    const phase = phaseOf(record.attempt.attemptId);
    const sum = sums.get(phase) ?? { sampledTokens: 0, trainedTokens: 0 };
    sums.set(phase, sum);
    sum.sampledTokens += fidelity.sampledTokens;
    sum.trainedTokens += fidelity.trainedTokens;
  } catch (error) {
    if (!GimbalError.is(error)) throw error;
    findings.add("fatal", "no-trajectory", key, error.message);
  }
}

/** Steps must agree with what was planned, stored, written to `metrics.jsonl` and kept as checkpoints. */
async function checkSteps(
  run: StoredRun,
  sums: ReadonlyMap<string, StepSums>,
  counts: ValidationCounts,
  findings: Findings,
): Promise<void> {
  if (run.manifest === null) return;
  const { runDir } = run;
  const metrics = await readMetrics(runDir);
  const checkpoints = await findCheckpoints(runDir);
  counts.steps = metrics.length;
  counts.checkpoints = checkpoints.length;
  await checkMetricsText(runDir, findings);
  metrics.forEach(({ step }, i) => {
    if (step !== i + 1)
      findings.add("fatal", "step-gap", "metrics.jsonl", `line ${i + 1} is of step ${step}`);
  });
  const lastLine = metrics.at(-1)?.step ?? 0;
  const lastCheckpoint = checkpoints.at(-1)?.step ?? -1;
  if (lastCheckpoint < 0 && counts.attempts > 0) {
    findings.add("fatal", "checkpoint-missing", "checkpoints", "no complete checkpoint is there");
  } else if (lastLine > lastCheckpoint) {
    const message = `step ${lastLine} is in metrics.jsonl, the latest complete checkpoint is ${lastCheckpoint}`;
    findings.add("fatal", "checkpoint-missing", `step ${lastLine}`, message);
  } else if (lastLine < lastCheckpoint) {
    const message = `checkpoint ${lastCheckpoint} has no line yet; resuming the run writes it`;
    findings.add(
      lastLine === lastCheckpoint - 1 ? "info" : "fatal",
      "line-missing",
      "metrics.jsonl",
      message,
    );
  }
  await checkFolders(runDir, new Set(checkpoints.map(({ step }) => String(step))), findings);
  for (const record of metrics) {
    const { sampledTokens, trainedTokens } = toStepReport(record);
    const found = sums.get(stepLabel(record.step)) ?? { sampledTokens: 0, trainedTokens: 0 };
    if (found.sampledTokens === sampledTokens && found.trainedTokens === trainedTokens) continue;
    const message = `metrics.jsonl says ${trainedTokens} of ${sampledTokens} tokens were trained, the stored calls give ${found.trainedTokens} of ${found.sampledTokens}`;
    findings.add("fatal", "step-tokens", `step ${record.step}`, message);
  }
  await checkPlans(run, Math.max(lastLine, lastCheckpoint), findings);
}

async function checkMetricsText(runDir: string, findings: Findings): Promise<void> {
  const text = await readFile(join(runDir, "metrics.jsonl"), "utf8").catch(() => "");
  const lines = text.split("\n");
  const seen = new Set<number>();
  lines.forEach((line, i) => {
    if (line === "") return;
    let step: unknown;
    try {
      step = (JSON.parse(line) as { step?: unknown } | null)?.step;
    } catch {
      // Reported below.
    }
    if (typeof step !== "number") {
      // A kill can tear the last line; resuming writes it again.
      const isLast = i === lines.length - 1;
      findings.add(
        isLast ? "info" : "fatal",
        "torn-line",
        "metrics.jsonl",
        `line ${i + 1} is no step`,
      );
    } else if (seen.has(step)) {
      findings.add("fatal", "step-twice", "metrics.jsonl", `step ${step} has two lines`);
    } else seen.add(step);
  });
}

async function checkFolders(
  runDir: string,
  complete: ReadonlySet<string>,
  findings: Findings,
): Promise<void> {
  const names = await readdir(join(runDir, "checkpoints")).catch(() => []);
  for (const name of names) {
    if (complete.has(name)) continue;
    const message = "is no complete checkpoint; a kill leaves such a folder, and it is passed over";
    findings.add(/^\d+$/.test(name) ? "warn" : "info", "incomplete-checkpoint", name, message);
  }
}

/** Every attempt planned for a finished step has one end, unless the run may close groups early. */
async function checkPlans(run: StoredRun, finished: number, findings: Findings): Promise<void> {
  const done = new Set(run.attempts.map(({ key }) => key));
  const planned = new Set<string>();
  for await (const { data, key } of run.store.read({ kind: stepPlanKind })) {
    for (const { attempts } of data as PlannedGroup[]) {
      for (const { attemptId } of attempts) {
        planned.add(attemptId);
        if (Number(key) > finished || done.has(attemptId)) continue;
        const isAllowed = (run.manifest?.config.quorum ?? 1) < 1;
        const message = `planned for step ${key}, which is finished, and has no end`;
        findings.add(isAllowed ? "info" : "fatal", "missing-attempt", attemptId, message);
      }
    }
  }
  for (const key of done) {
    if (!phaseOf(key).startsWith("step-") || planned.has(key)) continue;
    findings.add("fatal", "unplanned-attempt", key, "no step planned it");
  }
}
