/**
 * Task, Attempt and Verdict: what is asked, one try at it, and how it was judged.
 */
import type { AttemptId, GroupId, PolicyVersion, TaskId } from "./ids.js";

/** Limits of one attempt. Absent = no limit of that kind. */
export interface Budgets {
  /** Model calls. */
  readonly maxCalls?: number;
  /** Sampled tokens over all calls. */
  readonly maxSampledTokens?: number;
  /** Prompt and completion of one call together. */
  readonly maxContextTokens?: number;
  /** Sampled tokens of one call. */
  readonly maxTokensPerCall?: number;
  /** From the start of the harness. */
  readonly wallClockMs?: number;
}

/** How an attempt is judged: a name known to the verifier registry of the caller, and its plain-data options. */
export interface VerifierSpec {
  readonly kind: string;
  readonly options: Readonly<Record<string, unknown>>;
}

/** What the agent is asked to do. Plain data: it can be written to a JSONL file. */
export interface Task {
  readonly taskId: TaskId;
  readonly suite: string;
  readonly family: string;
  readonly split: "train" | "heldout" | "heldout-family" | "demonstration" | "pivot";
  readonly instruction: string;
  /** The workspace: relative POSIX path to file text. */
  readonly files: Readonly<Record<string, string>>;
  /** Paths (or folders, ending in `/`) whose changes never reach grading: tests, checkers, `.git/`. */
  readonly protectedPaths: readonly string[];
  /** Files added only to the grading copy: hidden tests. */
  readonly gradingFiles: Readonly<Record<string, string>>;
  readonly verifier: VerifierSpec;
  readonly budgets: Budgets;
}

/** Why an attempt did not succeed, or could not be judged. */
export type FailureClass =
  | "none"
  | "wrong-result"
  | "no-change"
  | "malformed-call"
  | "call-budget"
  | "token-budget"
  | "context-overflow"
  | "wall-clock"
  | "output-limit"
  | "tampered"
  | "harness-crash"
  | "infrastructure";

/** One piece of evidence behind a score. */
export interface Evidence {
  readonly kind: string;
  readonly passed: boolean;
  readonly text: string;
}

/** The judgement of one attempt. `score` null = not scored, which is not zero. */
export interface Verdict {
  readonly verifier: string;
  /** In [0, 1]. */
  readonly score: number | null;
  readonly failureClass: FailureClass;
  readonly evidence: readonly Evidence[];
}

/** One planned try at a task. */
export interface Attempt {
  readonly attemptId: AttemptId;
  readonly taskId: TaskId;
  readonly groupId: GroupId;
  /** Position in the group, from 0. */
  readonly index: number;
  /** 32-bit unsigned; every random choice of the attempt derives from it. */
  readonly seed: number;
  readonly policyVersion: PolicyVersion;
}
