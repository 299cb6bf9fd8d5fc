/**
 * What an attempt's end means: a pure function of how the process ended, what the gateway saw, and the verdict.
 *
 * Law: an attempt stopped by a budget scores 0 and is trained; a failure of our own machinery scores null and is run
 * again; everything else keeps the verifier's word.
 */
import type { FailureClass, HarnessOutcome, SandboxExit, Verdict } from "@gimbal-rl/core";
import type { SessionInfo } from "@gimbal-rl/proxy";

/** The facts of a finished attempt. */
export interface AttemptFacts {
  readonly exit: Pick<SandboxExit, "endedBy" | "exitCode" | "signal">;
  readonly outcome: HarnessOutcome;
  readonly info: Pick<SessionInfo, "calls" | "limitHits" | "captureFailures" | "refusals">;
  readonly verdict: Verdict;
}

/** The class and the final score. */
export interface AttemptClass {
  readonly failureClass: FailureClass;
  readonly score: number | null;
}

const engineFaults: readonly string[] = ["engine-failed", "unavailable", "timeout"];

/** Decides class and score; the first rule that applies wins. */
export function classifyAttempt({ exit, info, outcome, verdict }: AttemptFacts): AttemptClass {
  if (info.captureFailures > 0) return { failureClass: "infrastructure", score: null };
  // A harness answers a full context by compacting; one that called again and ended by itself was not stopped by it.
  const wentOn = ({ atCall }: { readonly atCall: number }): boolean =>
    info.calls > atCall && outcome.status === "completed";
  const engineFailed = engineFaults.some((code) => (info.refusals[code] ?? 0) > 0);
  if (engineFailed && outcome.status === "failed") {
    return { failureClass: "infrastructure", score: null };
  }
  if (exit.endedBy === "output-limit") return { failureClass: "output-limit", score: 0 };
  const limit = info.limitHits.find(
    (hit) => hit.limit !== "context-overflow" || !wentOn(hit),
  )?.limit;
  // An agent that loops on against refusals runs into the clock in the end; the budget is what stopped its work.
  if (exit.endedBy === "timeout") return { failureClass: limit ?? "wall-clock", score: 0 };
  if (limit !== undefined) return { failureClass: limit, score: 0 };
  if (info.calls === 0) return { failureClass: "infrastructure", score: null };
  if (outcome.status === "failed") {
    // It worked and then fell over: the workspace it left still counts, the class says how it ended.
    if (verdict.score === 1) return { failureClass: "none", score: 1 };
    return { failureClass: "harness-crash", score: verdict.score };
  }
  if (verdict.score === null) return { failureClass: "infrastructure", score: null };
  return { failureClass: verdict.failureClass, score: verdict.score };
}
