import type { GenerateEvent, GenerateRequest } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { createFakeClock, createScriptedEngine, parseChatChunks, parseSse } from "./index.js";

const encode = (text: string): number[] => [...text].map((letter) => letter.charCodeAt(0));
const request: GenerateRequest = {
  promptIds: [1],
  maxTokens: 100,
  sampling: { temperature: 1, topP: 1, topK: 0 },
  stopIds: [7],
  seed: 1,
};

async function collect(events: AsyncIterable<GenerateEvent>): Promise<GenerateEvent[]> {
  const all: GenerateEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

describe("the fake clock", () => {
  it("runs timers in order of time and forgets cancelled ones", async () => {
    const clock = createFakeClock(0);
    const seen: string[] = [];
    clock.schedule(20, () => seen.push(`b${clock.nowMs()}`));
    clock.schedule(10, () => {
      seen.push(`a${clock.nowMs()}`);
      clock.schedule(5, () => seen.push(`c${clock.nowMs()}`));
    });
    clock.schedule(12, () => seen.push("never"))();
    await clock.advance(15);
    expect(seen).toEqual(["a10", "c15"]);
    await clock.advance(100);
    expect(seen).toEqual(["a10", "c15", "b20"]);
    expect([clock.nowMs(), clock.pendingTimers]).toEqual([115, 0]);
  });
});

describe("the scripted engine", () => {
  it("keeps the contract: equal counts, the stop id sampled, one end, last", async () => {
    const engine = createScriptedEngine({ encode, script: [{ text: "abc", chunkSize: 2 }] });
    const events = await collect(engine.generate(request, new AbortController().signal));
    const deltas = events.filter((event) => event.type === "tokens-delta");
    expect(deltas.flatMap((event) => event.ids)).toEqual([97, 98, 99, 7]);
    expect(deltas.every((event) => event.ids.length === event.logprobs.length)).toBe(true);
    expect(deltas.flatMap((event) => event.logprobs).every((value) => value < 0)).toBe(true);
    expect(events.at(-1)).toEqual({ type: "generate-end", reason: "stop", cachedTokens: 0 });
    expect(engine).toMatchObject({ active: 0, aborted: 0 });
  });

  it("stops at the limit, on abort, and when its loop is left", async () => {
    const engine = createScriptedEngine({ encode, script: () => ({ text: "abcdef" }) });
    const never = new AbortController().signal;
    const cut = await collect(engine.generate({ ...request, maxTokens: 2 }, never));
    expect(cut.at(-1)).toMatchObject({ reason: "length" });
    const abort = new AbortController();
    for await (const event of engine.generate(request, abort.signal)) {
      if (event.type === "tokens-delta") abort.abort();
      else expect(event.reason).toBe("aborted");
    }
    for await (const _event of engine.generate(request, never)) break;
    expect(engine).toMatchObject({ active: 0, aborted: 2 });
  });

  it("walks its list per session and fails past its end", async () => {
    const engine = createScriptedEngine({ encode, script: [{ text: "a" }] });
    const signal = new AbortController().signal;
    for (const sessionId of ["s1", "s2"] as never[]) {
      await collect(engine.generate({ ...request, sessionId }, signal));
    }
    const again = engine.generate({ ...request, sessionId: "s1" as never }, signal);
    await expect(collect(again)).rejects.toThrow(/turn 1 was asked/);
  });
});

describe("the stream readers", () => {
  it("read events, comments and the closing mark, and refuse a stream cut inside an event", () => {
    const text = ': hi\n\nevent: x\ndata: {"a":1}\n\ndata: [DONE]\n\n';
    expect(parseSse(text)).toEqual([
      { type: "comment", event: "", data: " hi" },
      { type: "event", event: "x", data: '{"a":1}' },
      { type: "event", event: "", data: "[DONE]" },
    ]);
    expect(parseChatChunks(text)).toEqual([{ a: 1 }]);
    expect(() => parseSse(text.slice(0, -1))).toThrow(/inside an event/);
    expect(() => parseChatChunks('data: {"a":1}\n\n')).toThrow(/DONE/);
  });
});
