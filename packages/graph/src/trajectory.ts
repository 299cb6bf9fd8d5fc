/**
 * CallGraph -> Trajectory: one branch per leaf, each sampled segment owned by exactly one branch.
 *
 * Laws: the segments of a branch, concatenated, are exactly the prompt and completion of its last call; every sampled
 * segment is trained on at most one branch; every sampled token that is not trained has a reason. Calls cut by a
 * budget, truncated or malformed are trained.
 */
import {
  type AttemptId,
  type Branch,
  type CapturedCall,
  GimbalError,
  type Segment,
  type Trajectory,
} from "@gimbal-rl/core";
import { buildCallGraph, type CallGraph, isDelivered } from "./call-graph.js";
import { type CallOutcome, reportFidelity } from "./fidelity.js";
import { type ValidateCallOptions, validateCall } from "./validate-call.js";

/** How a trajectory is built. */
export interface BuildTrajectoryOptions extends ValidateCallOptions {
  /**
   * Whether a call that was aborted, or whose engine failed, is trained although no later call shows that its tokens
   * reached the harness. Set it when the attempt was stopped by its own budget. Default false.
   */
  readonly trainUndelivered?: boolean;
  /** Leaves a call out for the returned reason (side calls, for example); null keeps it. */
  readonly leaveOut?: (call: CapturedCall) => string | null;
}

function judgeCalls(graph: CallGraph, options: BuildTrajectoryOptions): CallOutcome[] {
  return graph.nodes.map((node): CallOutcome => {
    const { call } = node;
    const findings = validateCall(call, options);
    const fatal = findings.find((finding) => finding.level === "fatal");
    const undelivered = !isDelivered(call) && node.childIndexes.length === 0;
    const reason =
      fatal?.code ??
      options.leaveOut?.(call) ??
      (undelivered && options.trainUndelivered !== true ? "undelivered" : null);
    return { node, findings, reason };
  });
}

function sampledSegment(call: CapturedCall, trained: boolean): Segment {
  return {
    kind: "sampled",
    ids: call.sampledIds,
    // Counts that disagree are a fatal finding; such a segment is kept for reading, without log-probabilities.
    logprobs: call.logprobs.length === call.sampledIds.length ? call.logprobs : [],
    callId: call.callId,
    trained,
    policyRuns: call.policyRuns,
  };
}

function givenSegment(call: CapturedCall, from: number): Segment {
  const ids = call.promptIds.slice(from);
  return { kind: "given", ids, logprobs: [], callId: call.callId, trained: false, policyRuns: [] };
}

function buildBranch(
  graph: CallGraph,
  leafIndex: number,
  outcomes: readonly CallOutcome[],
  owned: Set<number>,
): Branch {
  const path: number[] = [];
  for (let at: number | null = leafIndex; at !== null; at = graph.nodes[at].parentIndex) {
    path.push(at);
  }
  path.reverse();
  const segments: Segment[] = [];
  for (const index of path) {
    const { call, inheritedTokens } = graph.nodes[index];
    if (call.promptIds.length > inheritedTokens) segments.push(givenSegment(call, inheritedTokens));
    if (call.sampledIds.length === 0) continue;
    segments.push(sampledSegment(call, outcomes[index].reason === null && !owned.has(index)));
    owned.add(index);
  }
  return { segments, callIds: path.map((index) => graph.nodes[index].call.callId) };
}

/**
 * Builds the trajectory of one attempt from its calls, in any order.
 *
 * A call that sampled nothing ends no branch.
 *
 * @throws {GimbalError} `invalid-request` when a call belongs to another attempt or occurs twice.
 * @example
 * const trajectory = buildTrajectory(attemptId, calls, { temperature: 1 });
 * trajectory.fidelity.coverage; // 1 when every sampled token is trained
 */
export function buildTrajectory(
  attemptId: AttemptId,
  calls: readonly CapturedCall[],
  options: BuildTrajectoryOptions = {},
): Trajectory {
  const foreign = calls.find((call) => call.attemptId !== null && call.attemptId !== attemptId);
  if (foreign !== undefined) {
    throw new GimbalError(
      "invalid-request",
      `Call ${foreign.callId} belongs to attempt ${foreign.attemptId}, expected ${attemptId}. Pass one attempt's calls.`,
    );
  }
  const graph = buildCallGraph(calls);
  const outcomes = judgeCalls(graph, options);
  const owned = new Set<number>();
  const branches = graph.leafIndexes.map((index) => buildBranch(graph, index, outcomes, owned));
  return { attemptId, branches, fidelity: reportFidelity(outcomes, branches.length) };
}
