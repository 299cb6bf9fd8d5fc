import { describe, expect, it } from "vitest";
import { type AttemptFacts, classifyAttempt } from "./classify-attempt.js";

const facts = (change: Partial<AttemptFacts> = {}): AttemptFacts => ({
  exit: { endedBy: "exit", exitCode: 0, signal: null },
  outcome: {
    status: "completed",
    finalText: "Done.",
    errorText: null,
    toolCalls: 2,
    toolErrors: 0,
    nativeSessionId: null,
  },
  info: { calls: 3, limitHits: [], captureFailures: 0, refusals: {} },
  verdict: { verifier: "v", score: 1, failureClass: "none", evidence: [] },
  ...change,
});
const failed = { ...facts().outcome, status: "failed" as const, errorText: "400 stop" };

describe("classifyAttempt", () => {
  it("keeps the verifier's word when the agent ended by itself", () => {
    expect(classifyAttempt(facts())).toEqual({ failureClass: "none", score: 1 });
    const wrong = { verifier: "v", score: 0, failureClass: "wrong-result", evidence: [] } as const;
    expect(classifyAttempt(facts({ verdict: wrong }))).toEqual({
      failureClass: "wrong-result",
      score: 0,
    });
  });

  it("scores an attempt stopped by a budget 0, even when its files are right", () => {
    const info = {
      ...facts().info,
      limitHits: [{ limit: "call-budget" as const, hits: 1, atCall: 8 }],
    };
    expect(classifyAttempt(facts({ info, outcome: failed }))).toEqual({
      failureClass: "call-budget",
      score: 0,
    });
    const exit = { endedBy: "timeout" as const, exitCode: null, signal: "SIGKILL" };
    expect(classifyAttempt(facts({ exit })).failureClass).toBe("wall-clock");
    expect(classifyAttempt(facts({ exit, info })).failureClass).toBe("call-budget");
    expect(classifyAttempt(facts({ exit: { ...exit, endedBy: "output-limit" } }))).toEqual({
      failureClass: "output-limit",
      score: 0,
    });
  });

  it("keeps the verifier's word when the agent went on after its context overflowed", () => {
    const overflow = { limit: "context-overflow" as const, hits: 1, atCall: 2 };
    const compacted = { ...facts().info, calls: 3, limitHits: [overflow] };
    expect(classifyAttempt(facts({ info: compacted }))).toEqual({ failureClass: "none", score: 1 });
    const stopped = { failureClass: "context-overflow", score: 0 };
    expect(classifyAttempt(facts({ info: compacted, outcome: failed }))).toEqual(stopped);
    const atTheEnd = { ...compacted, limitHits: [{ ...overflow, atCall: 3 }] };
    expect(classifyAttempt(facts({ info: atTheEnd }))).toEqual(stopped);
  });

  it("does not score what our own machinery spoiled", () => {
    const noCalls = { ...facts().info, calls: 0 };
    expect(classifyAttempt(facts({ info: noCalls, outcome: failed })).score).toBeNull();
    const engine = { ...facts().info, refusals: { "engine-failed": 2 } };
    expect(classifyAttempt(facts({ info: engine, outcome: failed })).failureClass).toBe(
      "infrastructure",
    );
    const lost = { ...facts().info, captureFailures: 1 };
    expect(classifyAttempt(facts({ info: lost })).score).toBeNull();
  });

  it("names a crash of the harness, and keeps the score of what it left", () => {
    const zero = { verifier: "v", score: 0, failureClass: "no-change", evidence: [] } as const;
    expect(classifyAttempt(facts({ outcome: failed, verdict: zero }))).toEqual({
      failureClass: "harness-crash",
      score: 0,
    });
  });
});
