import { type AttemptId, asId, type Branch, type CallId } from "@gimbal-rl/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { makeCall, randomAttempt, shuffled } from "../test/calls.js";
import { mergeFidelity } from "./fidelity.js";
import { buildTrajectory } from "./trajectory.js";

const attemptId = asId<AttemptId>("attempt");
const seeds = fc.integer({ min: 0, max: 2 ** 31 });
const counts = fc.integer({ min: 0, max: 14 });
const idsOf = (branch: Branch): number[] => branch.segments.flatMap((segment) => [...segment.ids]);

test("the segments of a branch are exactly what its last sampling call saw and sampled", () => {
  fc.assert(
    fc.property(seeds, counts, (seed, count) => {
      const { calls } = randomAttempt(seed, count);
      const byId = new Map(calls.map((call) => [call.callId, call]));
      for (const branch of buildTrajectory(attemptId, calls).branches) {
        const last = byId.get(branch.callIds.at(-1) ?? asId<CallId>(""));
        expect(idsOf(branch)).toEqual([...(last?.promptIds ?? []), ...(last?.sampledIds ?? [])]);
      }
    }),
  );
});

test("every call that sampled is on a branch and trained exactly once or left out with a reason", () => {
  fc.assert(
    fc.property(seeds, counts, (seed, count) => {
      const { calls, madeFrom } = randomAttempt(seed, count);
      const { branches, fidelity } = buildTrajectory(attemptId, calls);
      const segments = branches.flatMap((branch) => branch.segments);
      const continued = new Set(madeFrom.values());
      let leftOut = 0;
      for (const call of calls) {
        const mine = segments.filter((s) => s.kind === "sampled" && s.callId === call.callId);
        if (call.sampledIds.length === 0) {
          expect(mine).toHaveLength(0);
          continue;
        }
        const undelivered = call.finishReason === "aborted" && !continued.has(call.callId);
        if (undelivered) leftOut += call.sampledIds.length;
        expect(mine.length).toBeGreaterThan(0);
        expect(mine.filter((segment) => segment.trained)).toHaveLength(undelivered ? 0 : 1);
        for (const segment of mine) expect(segment.logprobs).toEqual(call.logprobs);
      }
      expect(fidelity.sampledTokens - fidelity.trainedTokens).toBe(leftOut);
      expect(fidelity.leftOut).toEqual(
        leftOut === 0 ? [] : [{ reason: "undelivered", tokens: leftOut }],
      );
    }),
  );
});

test("the order in which calls are given does not matter", () => {
  fc.assert(
    fc.property(seeds, counts, seeds, (seed, count, order) => {
      const { calls } = randomAttempt(seed, count);
      expect(buildTrajectory(attemptId, shuffled(calls, order))).toEqual(
        buildTrajectory(attemptId, calls),
      );
    }),
  );
});

test("an aborted call is trained when a later call continues it, or when asked", () => {
  const aborted = makeCall(0, { promptIds: [1], sampledIds: [2, 3], finishReason: "aborted" });
  const next = makeCall(1, { promptIds: [1, 2, 3, 4], sampledIds: [5] });
  expect(buildTrajectory(attemptId, [aborted]).fidelity.coverage).toBe(0);
  expect(buildTrajectory(attemptId, [aborted, next]).fidelity.coverage).toBe(1);
  const asked = buildTrajectory(attemptId, [aborted], { trainUndelivered: true });
  expect(asked.fidelity.coverage).toBe(1);
});

test("a call cut by a budget, truncated or malformed is trained", () => {
  const call = makeCall(0, {
    promptIds: [1],
    sampledIds: [2],
    finishReason: "length",
    issues: ["truncated", "malformed-tool-call"],
  });
  const { fidelity } = buildTrajectory(attemptId, [call]);
  expect(fidelity).toMatchObject({ coverage: 1, malformedCalls: 1, fatal: [] });
});

test("a fatal call is kept on its branch, not trained, and named", () => {
  const calls = [
    makeCall(0, { promptIds: [1], sampledIds: [2, 3], logprobs: [-1] }),
    makeCall(1, { promptIds: [1, 2, 3, 4], sampledIds: [5] }),
  ];
  const { branches, fidelity } = buildTrajectory(attemptId, calls);
  expect(branches).toHaveLength(1);
  expect(branches[0].segments.map((s) => [s.kind, s.trained])).toEqual([
    ["given", false],
    ["sampled", false],
    ["given", false],
    ["sampled", true],
  ]);
  expect(fidelity.leftOut).toEqual([{ reason: "count-mismatch", tokens: 2 }]);
  expect(fidelity.fatal).toEqual(["call-0: count-mismatch: 1 log-probabilities, 2 sampled ids"]);
});

test("tokens whose ids the engine never returned count as sampled and left out", () => {
  const call = makeCall(0, {
    promptIds: [],
    sampledIds: [],
    usage: { promptTokens: 7, completionTokens: 5, cachedTokens: 0 },
    issues: ["missing-ids"],
  });
  const { fidelity } = buildTrajectory(attemptId, [call]);
  expect(fidelity).toMatchObject({ sampledTokens: 5, trainedTokens: 0, coverage: 0 });
  expect(fidelity.leftOut).toEqual([{ reason: "missing-ids", tokens: 5 }]);
});

test("log-probabilities are not needed when they are not required", () => {
  const call = makeCall(0, { promptIds: [1], sampledIds: [2], logprobs: [] });
  expect(buildTrajectory(attemptId, [call]).fidelity.coverage).toBe(0);
  const sft = buildTrajectory(attemptId, [call], { requireLogprobs: false });
  expect(sft.fidelity.coverage).toBe(1);
});

test("a call that sampled nothing ends no branch, and the call before it still does", () => {
  const calls = [
    makeCall(0, { promptIds: [9], sampledIds: [] }),
    makeCall(1, { promptIds: [1], sampledIds: [2] }),
    makeCall(2, { promptIds: [1, 2, 3], sampledIds: [] }),
  ];
  const { branches, fidelity } = buildTrajectory(attemptId, calls);
  expect(branches.map((branch) => branch.callIds)).toEqual([["call-1"]]);
  expect(fidelity).toMatchObject({ calls: 3, coverage: 1 });
});

test("a rule leaves calls out for its own reason", () => {
  const calls = [
    makeCall(0, { promptIds: [1], sampledIds: [2], model: "small" }),
    makeCall(1, { promptIds: [3], sampledIds: [4, 5] }),
  ];
  const { fidelity } = buildTrajectory(attemptId, calls, {
    leaveOut: (call) => (call.model === "small" ? "side-call" : null),
  });
  expect(fidelity.leftOut).toEqual([{ reason: "side-call", tokens: 1 }]);
  expect(fidelity.trainedTokens).toBe(2);
});

test("a history that no longer matches becomes a new root, counted as forked, with both parts trained", () => {
  const calls = [
    makeCall(0, { promptIds: [1, 2], sampledIds: [3, 4] }),
    makeCall(1, {
      promptIds: [1, 2, 7],
      sampledIds: [8],
      conversation: { messages: [{ role: "assistant", parts: [] }], tools: [] },
    }),
  ];
  const { branches, fidelity } = buildTrajectory(attemptId, calls);
  expect(branches).toHaveLength(2);
  expect(fidelity.links).toMatchObject({ exact: 0, root: 1, forked: 1 });
  expect(fidelity.coverage).toBe(1);
});

test("a sampled end-of-turn is trained and the tokens a template adds after it are given", () => {
  const endOfTurn = 50;
  const newline = 51;
  const calls = [
    makeCall(0, { promptIds: [1], sampledIds: [2, endOfTurn] }),
    makeCall(1, { promptIds: [1, 2, endOfTurn, newline, 3], sampledIds: [4, endOfTurn] }),
  ];
  const [branch] = buildTrajectory(attemptId, calls).branches;
  expect(branch.segments.map((s) => [s.kind, ...s.ids])).toEqual([
    ["given", 1],
    ["sampled", 2, endOfTurn],
    ["given", newline, 3],
    ["sampled", 4, endOfTurn],
  ]);
});

test("calls of another attempt are refused", () => {
  const call = makeCall(0, { promptIds: [1], sampledIds: [2] });
  expect(() => buildTrajectory(asId<AttemptId>("other"), [call])).toThrowError(
    expect.objectContaining({ code: "invalid-request" }),
  );
});

test("merged reports add up", () => {
  const good = makeCall(0, { promptIds: [1], sampledIds: [2, 3] });
  const bad = makeCall(0, { promptIds: [1], sampledIds: [2, 3], logprobs: [] });
  const merged = mergeFidelity(
    [good, bad].map((call) => buildTrajectory(attemptId, [call]).fidelity),
  );
  expect(merged).toMatchObject({ sampledTokens: 4, trainedTokens: 2, coverage: 0.5, calls: 2 });
  expect(merged.leftOut).toEqual([{ reason: "missing-logprobs", tokens: 2 }]);
});
