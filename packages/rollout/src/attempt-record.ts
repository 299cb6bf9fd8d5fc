/**
 * What is stored about a finished attempt. Its model calls are stored by the gateway; this record names the session
 * they belong to, so calls of interrupted or discarded tries are never counted.
 */
import type {
  Attempt,
  FailureClass,
  HarnessOutcome,
  SandboxLevel,
  SessionId,
  Verdict,
} from "@gimbal-rl/core";

/** Seconds an attempt spent, by stage. CPU seconds where the sandbox tells, else wall. */
export interface AttemptSeconds {
  /** CPU time of the harness's process tree. */
  readonly harness: number;
  /** Making and reading the workspace. */
  readonly tools: number;
  readonly grading: number;
  /** Wall time from the start of the harness to its end. */
  readonly wall: number;
}

/** A finished, judged attempt. */
export interface AttemptRecord {
  readonly attempt: Attempt;
  readonly sessionId: SessionId;
  readonly verdict: Verdict;
  /** Why it did not succeed; `none` on full score. */
  readonly failureClass: FailureClass;
  readonly outcome: HarnessOutcome;
  readonly sandboxLevel: SandboxLevel;
  readonly calls: number;
  readonly sampledTokens: number;
  readonly seconds: AttemptSeconds;
}

/** A try that an infrastructure failure spoiled; it is run again and its tokens are not trained. */
export interface DiscardedTry {
  readonly attempt: Attempt;
  readonly sessionId: SessionId | null;
  readonly reason: string;
  readonly sampledTokens: number;
}

/** Event kind of an attempt that counts. */
export const attemptEndKind = "attempt-end";
/** Event kind of an attempt that was rerun or dropped; it is counted, never trained. */
export const attemptDiscardedKind = "attempt-discarded";
