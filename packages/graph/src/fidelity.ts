/**
 * The fidelity report: how many sampled tokens are trained, and a reason for each one that is not.
 *
 * Law: trained + left out = sampled, always.
 */
import type { CapturedCall, FidelityReport, LeftOut } from "@gimbal-rl/core";
import type { CallNode } from "./call-graph.js";
import type { CallFinding } from "./validate-call.js";

/** A call, what was found about it, and why it is left out (null = trained). */
export interface CallOutcome {
  readonly node: CallNode;
  readonly findings: readonly CallFinding[];
  readonly reason: string | null;
}

/** Sampled tokens of a call: its ids, or what the engine reported when the ids are missing. */
function sampledCount(call: CapturedCall): number {
  return call.sampledIds.length > 0 ? call.sampledIds.length : call.usage.completionTokens;
}

/** Drift class of the link to the parent: `exact`; `forked` = a new root although the prompt holds an earlier turn. */
function linkClass({ call, parentIndex }: CallNode): "exact" | "forked" | "root" {
  if (parentIndex !== null) return "exact";
  const hasHistory = call.conversation.messages.some((message) => message.role === "assistant");
  return hasHistory || call.tape.forkReason !== null ? "forked" : "root";
}

function sortedLeftOut(byReason: ReadonlyMap<string, number>): LeftOut[] {
  return [...byReason]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([reason, tokens]) => ({ reason, tokens }));
}

/** Builds the report of one attempt. */
export function reportFidelity(
  outcomes: readonly CallOutcome[],
  branchCount: number,
): FidelityReport {
  const links: Record<string, number> = {
    exact: 0,
    "text-equal": 0,
    realigned: 0,
    forked: 0,
    root: 0,
  };
  const byReason = new Map<string, number>();
  const fatal: string[] = [];
  let sampledTokens = 0;
  let trainedTokens = 0;
  let malformedCalls = 0;
  for (const { node, findings, reason } of outcomes) {
    const tokens = sampledCount(node.call);
    links[linkClass(node)] += 1;
    sampledTokens += tokens;
    if (reason === null) trainedTokens += tokens;
    else if (tokens > 0) byReason.set(reason, (byReason.get(reason) ?? 0) + tokens);
    if (findings.some((finding) => finding.code === "malformed-tool-call")) malformedCalls += 1;
    for (const finding of findings) {
      if (finding.level === "fatal") {
        fatal.push(`${node.call.callId}: ${finding.code}: ${finding.message}`);
      }
    }
  }
  return {
    sampledTokens,
    trainedTokens,
    coverage: sampledTokens === 0 ? 1 : trainedTokens / sampledTokens,
    leftOut: sortedLeftOut(byReason),
    calls: outcomes.length,
    branches: branchCount,
    links,
    malformedCalls,
    fatal,
  };
}

/**
 * Adds up the reports of several attempts.
 *
 * @example
 * mergeFidelity(trajectories.map((trajectory) => trajectory.fidelity)).coverage;
 */
export function mergeFidelity(reports: readonly FidelityReport[]): FidelityReport {
  const links: Record<string, number> = {};
  const byReason = new Map<string, number>();
  const sum = (pick: (report: FidelityReport) => number): number =>
    reports.reduce((total, report) => total + pick(report), 0);
  for (const report of reports) {
    for (const [kind, count] of Object.entries(report.links)) {
      links[kind] = (links[kind] ?? 0) + count;
    }
    for (const { reason, tokens } of report.leftOut) {
      byReason.set(reason, (byReason.get(reason) ?? 0) + tokens);
    }
  }
  const sampledTokens = sum((report) => report.sampledTokens);
  const trainedTokens = sum((report) => report.trainedTokens);
  return {
    sampledTokens,
    trainedTokens,
    coverage: sampledTokens === 0 ? 1 : trainedTokens / sampledTokens,
    leftOut: sortedLeftOut(byReason),
    calls: sum((report) => report.calls),
    branches: sum((report) => report.branches),
    links,
    malformedCalls: sum((report) => report.malformedCalls),
    fatal: reports.flatMap((report) => report.fatal),
  };
}
