import { createScriptedEngine } from "@gimbal-rl/testkit";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { sampleAnswer } from "./inference-answer.js";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("an engine that ignores its signal is left, and the answer is aborted", async () => {
  const engine = {
    ...createScriptedEngine({ encode: () => [1], script: [] }),
    generate: async function* () {
      await new Promise<never>(() => {});
    },
  };
  const request = {
    promptIds: [1],
    maxTokens: 4,
    sampling: { temperature: 1, topP: 1, topK: 0 },
    stopIds: [],
    seed: 1,
  };
  const abort = new AbortController();
  const answer = sampleAnswer(engine, request, abort.signal);
  const failure = expect(answer).rejects.toMatchObject({ code: "aborted" });
  abort.abort();
  await vi.advanceTimersByTimeAsync(5000);
  await failure;
  expect(vi.getTimerCount()).toBe(0);
});
