import { asId, type CallId, type SessionId } from "@gimbal-rl/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { makeCall, randomAttempt, shuffled } from "../test/calls.js";
import { buildCallGraph } from "./call-graph.js";

const seeds = fc.integer({ min: 0, max: 2 ** 31 });
const counts = fc.integer({ min: 0, max: 14 });

test("every call is linked to the call it was made from", () => {
  fc.assert(
    fc.property(seeds, counts, (seed, count) => {
      const { calls, madeFrom } = randomAttempt(seed, count);
      const { nodes } = buildCallGraph(calls);
      for (const { call, parentIndex } of nodes) {
        const parent = parentIndex === null ? null : nodes[parentIndex].call.callId;
        expect(parent).toBe(madeFrom.get(call.callId));
      }
    }),
  );
});

test("the parent is the longest exact prefix by brute force", () => {
  fc.assert(
    fc.property(seeds, counts, (seed, count) => {
      const { calls } = randomAttempt(seed, count);
      for (const { call, inheritedTokens } of buildCallGraph(calls).nodes) {
        const lengths = calls
          .filter((other) => other.index < call.index && other.sampledIds.length > 0)
          .map((other) => [...other.promptIds, ...other.sampledIds])
          .filter((full) => full.every((id, i) => call.promptIds[i] === id))
          .map((full) => full.length);
        expect(inheritedTokens).toBe(Math.max(0, ...lengths));
      }
    }),
  );
});

test("the order in which calls are given does not matter", () => {
  fc.assert(
    fc.property(seeds, counts, seeds, (seed, count, order) => {
      const { calls } = randomAttempt(seed, count);
      expect(buildCallGraph(shuffled(calls, order))).toEqual(buildCallGraph(calls));
    }),
  );
});

test("a repeat of a prompt is a sibling, and its children follow the completion they hold", () => {
  const { nodes, rootIndexes, leafIndexes } = buildCallGraph([
    makeCall(0, { promptIds: [1, 2], sampledIds: [3] }),
    makeCall(1, { promptIds: [1, 2], sampledIds: [4] }),
    makeCall(2, { promptIds: [1, 2, 4, 5], sampledIds: [6] }),
  ]);
  expect(rootIndexes).toEqual([0, 1]);
  expect(nodes[1].repeatOf).toBe(0);
  expect(nodes[2].parentIndex).toBe(1);
  expect(leafIndexes).toEqual([0, 2]);
});

test("between equal completions the tape's link wins, then the latest delivered call", () => {
  const same = { promptIds: [1], sampledIds: [2] };
  const aborted = { finishReason: "aborted" as const };
  const child = { promptIds: [1, 2, 3], sampledIds: [4] };
  const calls = [makeCall(0, same), makeCall(1, same), makeCall(2, { ...same, ...aborted })];
  expect(buildCallGraph([...calls, makeCall(3, child)]).nodes[3].parentIndex).toBe(1);
  const tape = {
    parentCallId: asId<CallId>("call-0"),
    reusedTokens: 2,
    rewritten: [],
    forkReason: null,
  };
  expect(buildCallGraph([...calls, makeCall(3, { ...child, tape })]).nodes[3].parentIndex).toBe(0);
});

test("a call that arrived later is never a parent", () => {
  const { nodes } = buildCallGraph([
    makeCall(0, { promptIds: [1, 2, 3], sampledIds: [4] }),
    makeCall(1, { promptIds: [1], sampledIds: [2] }),
  ]);
  expect(nodes.map((node) => node.parentIndex)).toEqual([null, null]);
});

test("across sessions a parent must have ended before the child started", () => {
  const other = { sessionId: asId<SessionId>("other") };
  const parent = makeCall(0, { promptIds: [1], sampledIds: [2], endedAtMs: 50 });
  const child = { promptIds: [1, 2], sampledIds: [3], ...other, callId: asId<CallId>("child") };
  expect(
    buildCallGraph([parent, makeCall(0, { ...child, startedAtMs: 50 })]).nodes.map(
      (node) => node.parentIndex,
    ),
  ).toEqual([null, 0]);
  expect(
    buildCallGraph([parent, makeCall(0, { ...child, startedAtMs: 49 })]).rootIndexes,
  ).toHaveLength(2);
});

test("a call given twice is refused", () => {
  const call = makeCall(0, { promptIds: [1], sampledIds: [2] });
  expect(() => buildCallGraph([call, call])).toThrowError(
    expect.objectContaining({ code: "invalid-request" }),
  );
});

test("the tree reads each id a bounded number of times", () => {
  // 300 turns of one growing conversation: 300 * 300 * 20 / 2 ids. Quadratic work per id would take minutes.
  const calls = [];
  let history: number[] = [];
  for (let index = 0; index < 300; index += 1) {
    const promptIds = [...history, ...Array.from({ length: 10 }, (_, i) => (index * 7 + i) % 50)];
    const sampledIds = Array.from({ length: 10 }, (_, i) => (index * 3 + i) % 50);
    calls.push(makeCall(index, { promptIds, sampledIds }));
    history = [...promptIds, ...sampledIds];
  }
  const { nodes, leafIndexes } = buildCallGraph(calls);
  expect(leafIndexes).toEqual([299]);
  expect(nodes.slice(1).every((node, i) => node.parentIndex === i)).toBe(true);
});
