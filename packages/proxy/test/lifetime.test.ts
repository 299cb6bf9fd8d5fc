/** Disconnects, retries, pauses, early headers: what happens to a call while clients and weights come and go. */
import { type AttemptId, asId, GimbalError, type PolicyVersion } from "@gimbal-rl/core";
import { parseChatChunks, parseSse, settle, waitUntil } from "@gimbal-rl/testkit";
import { afterEach, describe, expect, it } from "vitest";
import {
  type Bench,
  call,
  chatBody,
  chatUrl,
  deferred,
  post,
  sdkFor,
  startBench,
  streamedText,
} from "./support.js";

let bench: Bench;
afterEach(() => bench[Symbol.asyncDispose]());

const connections = ({ gateway }: Bench): number =>
  Number(/gimbal_gateway_connections (\d+)/.exec(gateway.metrics())?.[1]);

const streamed = { stream: true };
const marked = { "x-stainless-retry-count": "1" };

describe("a client that vanishes in the middle of a stream", () => {
  it("stops the engine after the grace of 2 s and leaves nothing behind", async () => {
    bench = await startBench([
      { text: "one two three", wait: new Promise(() => {}), waitAfter: 4, chunkSize: 4 },
    ]);
    const grant = bench.gateway.createSession();
    const exchange = post(chatUrl(grant), grant.key, chatBody("x", streamed));
    await waitUntil("the first token", () => streamedText(exchange) === "one");
    exchange.destroy();
    await waitUntil("the lost client", () => connections(bench) === 0);
    await bench.clock.advance(1999);
    expect(bench.engine.active).toBe(1);
    await bench.clock.advance(1);
    await waitUntil("the end", () => bench.gateway.calls(grant.sessionId).length === 1);
    expect(bench.engine).toMatchObject({ active: 0, aborted: 1 });
    expect(bench.clock.pendingTimers).toBe(0);
    expect(bench.gateway.session(grant.sessionId).inFlight).toBe(0);
    expect(bench.gateway.calls(grant.sessionId)[0]).toMatchObject({
      finishReason: "aborted",
      issues: ["aborted"],
      usage: { completionTokens: 4 },
    });
    expect(bench.gateway.metrics()).toContain("gimbal_gateway_calls_in_flight 0");
  });

  it("gets the same answer, byte for byte, when it retries within the grace", async () => {
    const gate = deferred();
    bench = await startBench([
      { text: "one two three", wait: gate.promise, waitAfter: 4, chunkSize: 4 },
    ]);
    const grant = bench.gateway.createSession();
    const lost = post(chatUrl(grant), grant.key, chatBody("x", streamed));
    await waitUntil("the first token", () => streamedText(lost) === "one");
    lost.destroy();
    await waitUntil("the lost client", () => connections(bench) === 0);
    const again = post(chatUrl(grant), grant.key, chatBody("x", streamed), marked);
    await waitUntil("the replayed start", () => streamedText(again) === "one");
    await bench.clock.advance(5000);
    gate.resolve();
    const text = await again.text;
    expect(text.startsWith(lost.received())).toBe(true);
    expect(parseChatChunks(text).length).toBeGreaterThan(3);
    expect(bench.engine.requests).toHaveLength(1);
    expect(bench.gateway.session(grant.sessionId)).toMatchObject({ calls: 1, replays: 1 });
  });
});

describe("a request with a retry mark", () => {
  it("attaches to the first while that is in flight, without streaming too", async () => {
    const gate = deferred();
    bench = await startBench([{ text: "only once", wait: gate.promise }]);
    const grant = bench.gateway.createSession();
    const first = call(grant, "x");
    await waitUntil("the first call", () => bench.engine.active === 1);
    const second = call(grant, "x", {}, marked);
    await waitUntil("the second", () => bench.gateway.session(grant.sessionId).replays === 1);
    gate.resolve();
    expect(await second).toEqual(await first);
    expect(bench.engine.requests).toHaveLength(1);
  });

  it("is a new sample, named as a retry, when the first answer was delivered whole", async () => {
    bench = await startBench([{ text: "a" }, { text: "b" }, { text: "c" }]);
    const grant = bench.gateway.createSession();
    await call(grant, "x");
    await call(grant, "x", {}, marked);
    await call(grant, "x", { temperature: 0.5 }, marked);
    const calls = bench.gateway.calls(grant.sessionId);
    expect(calls.map((found) => found.retryOf)).toEqual([null, calls[0]?.callId, null]);
    expect(new Set(calls.map((found) => found.seed)).size).toBe(3);
  });

  it("is a new sample after a failure", async () => {
    const error = new GimbalError("engine-failed", "boom");
    bench = await startBench([{ error }, { text: "fine" }]);
    const grant = bench.gateway.createSession();
    expect((await call(grant, "x")).status).toBe(503);
    expect((await call(grant, "x", {}, marked)).status).toBe(200);
    const calls = bench.gateway.calls(grant.sessionId);
    expect(calls.map((found) => found.issues)).toEqual([["empty", "engine-error"], []]);
    expect(calls[1]?.retryOf).toBe(calls[0]?.callId);
  });

  it("replays an answer whose connection broke after the last token", async () => {
    bench = await startBench([{ text: "long ".repeat(12_000), chunkSize: 100 }], {
      info: { contextLength: 400_000 },
      defaultMaxTokens: 300_000,
    });
    const grant = bench.gateway.createSession();
    const { request } = await import("node:http");
    // A client that never reads: the answer does not fit into the socket buffers.
    const stuck = request(chatUrl(grant), {
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${grant.key}` },
    });
    stuck.on("error", () => {});
    stuck.on("response", (incoming) => {
      incoming.on("error", () => {});
      incoming.pause();
    });
    stuck.end(chatBody("x", streamed));
    await waitUntil("the record", () => bench.gateway.calls(grant.sessionId).length === 1);
    await settle();
    stuck.destroy();
    await waitUntil("the free socket", () => bench.clock.pendingTimers === 0);
    const again = post(chatUrl(grant), grant.key, chatBody("x", streamed), marked);
    expect(parseChatChunks(await again.text).length).toBeGreaterThan(3);
    expect(bench.engine.requests).toHaveLength(1);
    expect(bench.gateway.calls(grant.sessionId)).toHaveLength(1);
    expect(bench.gateway.calls(grant.sessionId)[0]?.issues).toEqual([]);
  });
});

describe("the seed of a call", () => {
  it("depends on the attempt, the prompt and its occurrence, not on the order of arrival", async () => {
    bench = await startBench(() => ({ text: "a" }), { seed: 7 });
    const seedsOf = async (prompts: readonly string[]): Promise<Map<string, number[]>> => {
      const grant = bench.gateway.createSession({ attemptId: asId<AttemptId>("a1") });
      for (const prompt of prompts) await call(grant, prompt);
      const seeds = new Map<string, number[]>();
      for (const found of bench.gateway.calls(grant.sessionId)) {
        const text = JSON.stringify(found.conversation.messages);
        seeds.set(text, [...(seeds.get(text) ?? []), found.seed]);
      }
      return seeds;
    };
    const one = await seedsOf(["x", "y", "x"]);
    const two = await seedsOf(["x", "x", "y"]);
    expect(two).toEqual(one);
    expect(new Set([...one.values()].flat()).size).toBe(3);
    const other = bench.gateway.createSession({ attemptId: asId<AttemptId>("a2") });
    await call(other, "x");
    expect([...one.values()].flat()).not.toContain(bench.gateway.calls(other.sessionId)[0]?.seed);
  });
});

describe("pausing", () => {
  it("drains what samples, holds what comes, and stamps the version after resuming", async () => {
    const gate = deferred();
    bench = await startBench(({ callIndex }) =>
      callIndex === 0 ? { text: "old", wait: gate.promise } : { text: "new" },
    );
    const grant = bench.gateway.createSession();
    const first = call(grant, "one");
    await waitUntil("the first call", () => bench.engine.active === 1);
    let drained = false;
    const pausing = bench.gateway.pause().then(() => {
      drained = true;
    });
    const second = call(grant, "two");
    await waitUntil("the second call", () => bench.gateway.session(grant.sessionId).calls === 2);
    expect([drained, bench.engine.requests.length]).toEqual([false, 1]);
    gate.resolve();
    await pausing;
    await first;
    await settle();
    expect(bench.engine.requests).toHaveLength(1);
    bench.engine.setPolicyVersion("policy-1");
    bench.gateway.resume(asId<PolicyVersion>("policy-1"));
    await second;
    expect(bench.gateway.calls(grant.sessionId).map((found) => found.policyRuns)).toEqual([
      [{ policyVersion: "policy-0", tokens: 4 }],
      [{ policyVersion: "policy-1", tokens: 4 }],
    ]);
  });

  it("keeps a waiting stream alive with early headers and heartbeats", async () => {
    bench = await startBench([{ text: "late" }]);
    const grant = bench.gateway.createSession();
    await bench.gateway.pause();
    const exchange = post(chatUrl(grant), grant.key, chatBody("x", streamed));
    await waitUntil("the call", () => bench.gateway.session(grant.sessionId).inFlight === 1);
    await bench.clock.advance(2000);
    expect(await exchange.status).toBe(200);
    expect((await exchange.headers)["content-type"]).toContain("text/event-stream");
    await bench.clock.advance(30_000);
    bench.gateway.resume();
    const items = parseSse(await exchange.text);
    expect(items.filter((item) => item.type === "comment").length).toBeGreaterThanOrEqual(3);
    expect(parseChatChunks(await exchange.text).length).toBeGreaterThan(1);
  });

  it("stamps two runs on a call during which the weights changed", async () => {
    const gate = deferred();
    bench = await startBench([{ text: "abcdef", wait: gate.promise, waitAfter: 2 }]);
    const grant = bench.gateway.createSession();
    const exchange = post(chatUrl(grant), grant.key, chatBody("x", streamed));
    await waitUntil("two tokens", () => bench.gateway.session(grant.sessionId).sampledTokens === 2);
    bench.engine.setPolicyVersion("policy-1");
    gate.resolve();
    await exchange.text;
    expect(bench.gateway.calls(grant.sessionId)[0]?.policyRuns).toEqual([
      { policyVersion: "policy-0", tokens: 2 },
      { policyVersion: "policy-1", tokens: 5 },
    ]);
  });
});

describe("an engine that fails", () => {
  it("gives an honest status with retry-after while nothing was sent, streamed or not", async () => {
    const error = new GimbalError("unavailable", "The engine is loading.");
    bench = await startBench([{ error }, { error }]);
    const grant = bench.gateway.createSession();
    for (const extra of [{}, streamed]) {
      const exchange = post(chatUrl(grant), grant.key, chatBody("x", extra));
      expect(await exchange.status).toBe(503);
      expect((await exchange.headers)["retry-after"]).toBeDefined();
      expect(JSON.parse(await exchange.text)).toMatchObject({
        error: { message: "The engine is loading." },
      });
    }
    expect(bench.gateway.session(grant.sessionId).refusals).toEqual({ unavailable: 2 });
  });

  it("after the first token ends the stream with an error event that the SDK throws", async () => {
    bench = await startBench([
      { text: "half of it", error: new Error("segfault at 0x1"), errorAfter: 4 },
    ]);
    const grant = bench.gateway.createSession();
    const stream = await sdkFor(grant).chat.completions.create({
      model: "m",
      messages: [{ role: "user", content: "x" }],
      stream: true,
    });
    let seen = "";
    await expect(
      (async () => {
        for await (const chunk of stream) seen += chunk.choices[0]?.delta.content ?? "";
      })(),
    ).rejects.toThrow(/gateway failed/);
    expect(seen).toBe("half");
    expect(bench.gateway.calls(grant.sessionId)[0]).toMatchObject({
      finishReason: "error",
      issues: ["engine-error"],
      sampledIds: expect.objectContaining({ length: 4 }),
    });
    expect(bench.gateway.session(grant.sessionId).refusals).toEqual({ "engine-failed": 1 });
  });

  it("by hanging is given up after its time, and the session goes on", async () => {
    bench = await startBench([{ text: "a", wait: new Promise(() => {}) }, { text: "b" }], {
      limits: { stalledEngineMs: 20_000 },
    });
    const grant = bench.gateway.createSession();
    const stuck = call(grant, "x");
    await waitUntil("the call", () => bench.engine.active === 1);
    await bench.clock.advance(20_000);
    expect((await stuck).status).toBe(504);
    expect(bench.gateway.session(grant.sessionId).refusals).toEqual({ timeout: 1 });
    expect((await call(grant, "y")).status).toBe(200);
    expect(bench.clock.pendingTimers).toBe(0);
  });

  it("by ending without a reason is an engine error, not a short answer", async () => {
    bench = await startBench([{ text: "short", omitEnd: true }]);
    const grant = bench.gateway.createSession();
    expect((await call(grant, "x")).status).toBe(503);
    expect(bench.gateway.calls(grant.sessionId)[0]?.issues).toContain("engine-error");
  });
});
