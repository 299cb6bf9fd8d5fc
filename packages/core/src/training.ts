/**
 * Trajectories and training batches: flat data between graph, rollout and trainer.
 */
import type { AttemptId, CallId, GroupId, PolicyVersion, TaskId } from "./ids.js";
import type { Verdict } from "./task.js";

/** A run of ids on a branch, given to the model or sampled by it. Ids are in order of position. */
export interface Segment {
  readonly kind: "given" | "sampled";
  readonly ids: readonly number[];
  /** One per id when `kind` is `sampled`; empty when given. */
  readonly logprobs: readonly number[];
  /** The call that sampled it, or whose prompt first held it. */
  readonly callId: CallId;
  /** False when another branch owns this sampled segment, or a rule leaves it out. */
  readonly trained: boolean;
  /** One per sampled id run; empty when given. */
  readonly policyRuns: readonly {
    readonly policyVersion: PolicyVersion;
    readonly tokens: number;
  }[];
}

/** One root-to-leaf path. Concatenating the segments gives exactly what the model saw. */
export interface Branch {
  readonly segments: readonly Segment[];
  readonly callIds: readonly CallId[];
}

/** Sampled tokens that are not trained, and why. */
export interface LeftOut {
  readonly reason: string;
  readonly tokens: number;
}

/** How faithful a trajectory is. */
export interface FidelityReport {
  readonly sampledTokens: number;
  readonly trainedTokens: number;
  /** trained / sampled; 1 when nothing was sampled. */
  readonly coverage: number;
  readonly leftOut: readonly LeftOut[];
  readonly calls: number;
  readonly branches: number;
  /** Links by drift class: exact, text-equal, realigned, forked. */
  readonly links: Readonly<Record<string, number>>;
  readonly malformedCalls: number;
  readonly fatal: readonly string[];
}

/** The branches of one attempt. */
export interface Trajectory {
  readonly attemptId: AttemptId;
  readonly branches: readonly Branch[];
  readonly fidelity: FidelityReport;
}

/** A judged attempt inside its group. */
export interface GroupMember {
  readonly trajectory: Trajectory;
  readonly verdict: Verdict;
}

/** The attempts at one task that are compared with each other. */
export interface TrajectoryGroup {
  readonly groupId: GroupId;
  readonly taskId: TaskId;
  readonly members: readonly GroupMember[];
}

/**
 * A token trie: all branches of a group with common prefixes stored once.
 *
 * Rows are unique tokens in an order where parents come first and each segment is contiguous.
 * Shapes: R rows, S trie segments.
 */
export interface TokenTrie {
  /** [R] token id of each row. */
  readonly tokenIds: Int32Array;
  /** [R] depth of each row = its position. */
  readonly positions: Int32Array;
  /** [R] row of the previous token; -1 at a root. */
  readonly parentRows: Int32Array;
  /** [S] first row of each segment; segment s is rows start[s] .. start[s+1] (or R). */
  readonly segmentStarts: Int32Array;
  /** [S] parent segment, -1 at a root. A segment hangs below the *last* row of its parent. */
  readonly segmentParents: Int32Array;
}

/**
 * One loss term per sampled token and attempt. A shared row may have several.
 *
 * Shapes: N terms.
 */
export interface LossTerms {
  /** [N] row whose output predicts the target (the parent of the sampled token). */
  readonly rows: Int32Array;
  /** [N] the sampled id. */
  readonly targetIds: Int32Array;
  /** [N] index of the attempt in the group. */
  readonly attempts: Int32Array;
  /** [N] advantage of the attempt (0 allowed). */
  readonly advantages: Float32Array;
  /** [N] log-probability recorded when it was sampled. */
  readonly behaviourLogprobs: Float32Array;
  /** [N] weight in the aggregation; 1 by default. */
  readonly weights: Float32Array;
}

/** What the trainer takes for one group, or for several that share a trie. */
export interface TrainingBatch {
  /** The group; the ids joined with `+` when several groups share the trie. */
  readonly groupId: GroupId;
  /** The attempt of each index in `terms.attempts`, when known. */
  readonly attemptIds?: readonly AttemptId[];
  readonly trie: TokenTrie;
  readonly terms: LossTerms;
  /** Temperature the terms were sampled at. */
  readonly temperature: number;
}
