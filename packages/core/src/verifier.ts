/**
 * The Verifier port: judges the workspace an attempt left behind. It never sees the policy.
 */
import type { Sandbox, WorkspaceDiff } from "./sandbox.js";
import type { Task, Verdict } from "./task.js";

/** What a verifier gets. */
export interface VerifyInput {
  readonly task: Task;
  /** What the agent changed; applied to a clean copy, protected paths left out. */
  readonly diff: WorkspaceDiff;
  /** Where the clean copy is made. */
  readonly sandbox: Sandbox;
}

/** Judges attempts. A failing *agent* is a Verdict; a failing *verifier* is a Verdict with score null. */
export interface Verifier {
  readonly kind: string;
  verify(input: VerifyInput, signal: AbortSignal): Promise<Verdict>;
}
