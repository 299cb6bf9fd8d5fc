/**
 * Captured calls -> CallGraph: calls linked by token prefix, a forest.
 *
 * Law (`strict`): the parent of a call is the earlier call whose prompt and completion together are the longest exact
 * prefix of its prompt. The result depends on the calls alone, never on the order in which they are given. Retries and
 * deliberate repeats of one prompt are siblings. Cost is linear in the ids read.
 */
import { type CapturedCall, GimbalError } from "@gimbal-rl/core";
import { coveredNodes, createRadixTree, insertSequence, type RadixNode } from "./radix-tree.js";

/** One call and its place in the forest. Indices point into `CallGraph.nodes`. */
export interface CallNode {
  readonly call: CapturedCall;
  /** Null for a root: an agent, a sub-agent, or the call after a compaction. */
  readonly parentIndex: number | null;
  /** In canonical order. */
  readonly childIndexes: readonly number[];
  /** Ids of the prompt that are the parent's prompt and completion; 0 at a root. */
  readonly inheritedTokens: number;
  /** The first call with the same prompt, when this one sampled it again (a retry or a repeat); null otherwise. */
  readonly repeatOf: number | null;
}

/** Calls linked by token prefix. Nodes are in canonical order: by session, then by arrival in the session. */
export interface CallGraph {
  readonly nodes: readonly CallNode[];
  readonly rootIndexes: readonly number[];
  /** Calls that sampled something and have no child that did, in canonical order: each ends one branch. */
  readonly leafIndexes: readonly number[];
}

/** True when the client got what was sampled, as far as the call itself tells. */
export function isDelivered(call: CapturedCall): boolean {
  return (
    call.finishReason !== "aborted" &&
    call.finishReason !== "error" &&
    !call.issues.includes("aborted") &&
    !call.issues.includes("engine-error")
  );
}

function canonicalOrder(calls: readonly CapturedCall[]): CapturedCall[] {
  const firstStart = new Map<string, number>();
  const seen = new Set<string>();
  for (const call of calls) {
    if (seen.has(call.callId)) {
      throw new GimbalError(
        "invalid-request",
        `Call ${call.callId} is given twice; expected each call once. Drop the repeated record.`,
      );
    }
    seen.add(call.callId);
    const known = firstStart.get(call.sessionId);
    firstStart.set(call.sessionId, Math.min(known ?? call.startedAtMs, call.startedAtMs));
  }
  const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
  return [...calls].sort(
    (a, b) =>
      (firstStart.get(a.sessionId) ?? 0) - (firstStart.get(b.sessionId) ?? 0) ||
      compareText(a.sessionId, b.sessionId) ||
      a.index - b.index ||
      compareText(a.callId, b.callId),
  );
}

function isEarlier(candidate: CapturedCall, call: CapturedCall): boolean {
  return candidate.sessionId === call.sessionId
    ? candidate.index < call.index
    : candidate.endedAtMs <= call.startedAtMs;
}

/** Among calls with equal prompt and completion: the one the tape named, else the latest delivered, else the latest. */
function pickParent(
  candidates: readonly number[],
  ordered: readonly CapturedCall[],
  child: CapturedCall,
): number | null {
  let best: number | null = null;
  let bestScore = -1;
  for (const index of candidates) {
    const call = ordered[index];
    if (!isEarlier(call, child)) continue;
    const score = call.callId === child.tape.parentCallId ? 2 : isDelivered(call) ? 1 : 0;
    if (score >= bestScore) {
      best = index;
      bestScore = score;
    }
  }
  return best;
}

/**
 * Links calls strictly by token prefix.
 *
 * A call that sampled nothing is nobody's parent. Among calls with equal ids the tape's own link wins, then the latest
 * delivered one.
 *
 * @param calls - Calls of one attempt, in any order.
 * @throws {GimbalError} `invalid-request` when a call id occurs twice.
 * @example
 * const graph = buildCallGraph(calls);
 * graph.leafIndexes.length; // number of branches
 */
export function buildCallGraph(calls: readonly CapturedCall[]): CallGraph {
  const ordered = canonicalOrder(calls);
  const tree = createRadixTree();
  const endsAt = new Map<RadixNode, number[]>();
  ordered.forEach((call, index) => {
    if (call.sampledIds.length === 0) return;
    const full = [...call.promptIds, ...call.sampledIds];
    const end = insertSequence(tree, full, full.length, true);
    const ends = endsAt.get(end);
    if (ends === undefined) endsAt.set(end, [index]);
    else ends.push(index);
  });

  const parentIndexes = ordered.map((call): number | null => {
    const path = coveredNodes(tree, call.promptIds);
    for (let i = path.length - 1; i >= 0; i -= 1) {
      const parent = pickParent(endsAt.get(path[i]) ?? [], ordered, call);
      if (parent !== null) return parent;
    }
    return null;
  });
  const childIndexes = ordered.map((): number[] => []);
  parentIndexes.forEach((parent, index) => {
    if (parent !== null) childIndexes[parent].push(index);
  });
  const repeats = findRepeats(ordered);
  const nodes = ordered.map((call, index): CallNode => {
    const parentIndex = parentIndexes[index];
    const parent = parentIndex === null ? null : ordered[parentIndex];
    return {
      call,
      parentIndex,
      childIndexes: childIndexes[index],
      inheritedTokens: parent === null ? 0 : parent.promptIds.length + parent.sampledIds.length,
      repeatOf: repeats[index],
    };
  });
  const indexes = nodes.map((_, index) => index);
  const sampled = (index: number): boolean => ordered[index].sampledIds.length > 0;
  return {
    nodes,
    rootIndexes: indexes.filter((index) => nodes[index].parentIndex === null),
    leafIndexes: indexes.filter(
      (index) => sampled(index) && !nodes[index].childIndexes.some(sampled),
    ),
  };
}

function findRepeats(ordered: readonly CapturedCall[]): (number | null)[] {
  const tree = createRadixTree();
  const firstAt = new Map<RadixNode, number>();
  return ordered.map((call, index): number | null => {
    if (call.promptIds.length === 0) return null;
    const end = insertSequence(tree, call.promptIds, call.promptIds.length, true);
    const first = firstAt.get(end);
    if (first === undefined) firstAt.set(end, index);
    return first ?? null;
  });
}
