/** Parts that break: an engine that does not stop, a tape, dialect or record that throws. The run ends once all the same. */
import type { Engine, GenerateEvent } from "@gimbal-rl/core";
import { type Dialect, openAiChat } from "@gimbal-rl/dialects";
import { createTape } from "@gimbal-rl/renderers";
import { createMemoryStore } from "@gimbal-rl/store";
import { createScriptedEngine, waitUntil } from "@gimbal-rl/testkit";
import { afterEach, describe, expect, it } from "vitest";
import type { SessionGrant } from "../src/index.js";
import {
  type Bench,
  call,
  chatBody,
  chatUrl,
  deferred,
  post,
  renderer,
  startBench,
} from "./support.js";

let bench: Bench;
afterEach(() => bench[Symbol.asyncDispose]());

const encode = renderer.tokenizer.encode.bind(renderer.tokenizer);

/** An engine whose answers are these events; it never looks at its signal. */
function deafEngine(play: () => AsyncIterable<GenerateEvent>): Engine & { calls: number } {
  const scripted = createScriptedEngine({ encode, script: [] });
  const engine = {
    info: scripted.info,
    policyVersion: () => scripted.policyVersion(),
    calls: 0,
    generate: () => {
      engine.calls += 1;
      return play();
    },
    [Symbol.asyncDispose]: async () => {},
  };
  return engine;
}

const tokensOf = (text: string): GenerateEvent => {
  const ids = encode(text, { allowSpecial: true });
  const policyVersion = createScriptedEngine({ encode, script: [] }).policyVersion();
  return { type: "tokens-delta", ids, logprobs: ids.map(() => -1), policyVersion };
};

describe("an engine that ignores its signal", () => {
  it("holds neither the end of its session nor a pause", async () => {
    const engine = deafEngine(async function* () {
      yield tokensOf("half");
      await new Promise(() => {});
    });
    bench = await startBench([], { engine });
    const grant = bench.gateway.createSession();
    const exchange = post(chatUrl(grant), grant.key, chatBody("x", { stream: true }));
    await waitUntil("tokens", () => bench.gateway.session(grant.sessionId).sampledTokens === 4);
    const pausing = bench.gateway.pause();
    const closing = bench.gateway.closeSession(grant.sessionId);
    await bench.clock.advance(5000);
    expect(await closing).toMatchObject({ state: "closed", inFlight: 0 });
    await pausing;
    expect(await exchange.text).toContain("session has ended");
    expect(bench.gateway.calls(grant.sessionId)[0]).toMatchObject({
      finishReason: "aborted",
      sampledIds: expect.objectContaining({ length: 4 }),
    });
    expect(bench.clock.pendingTimers).toBe(0);
  });

  it("and goes on after a call was cut is left, and the call ends as cut", async () => {
    const engine = deafEngine(async function* () {
      for (;;) {
        yield tokensOf("four");
        await new Promise((resolve) => setImmediate(resolve));
      }
    });
    bench = await startBench([], { engine });
    const grant = bench.gateway.createSession({ budgets: { maxSampledTokens: 6 } });
    const answer = call(grant, "x");
    await waitUntil("tokens", () => bench.gateway.session(grant.sessionId).sampledTokens === 6);
    await bench.clock.advance(5000);
    expect((await answer).status).toBe(200);
    expect(bench.gateway.calls(grant.sessionId)[0]?.finishReason).toBe("length");
  });
});

describe("a call that is cut", () => {
  it("keeps the count of cached tokens, and is flagged only when the engine ignored its length", async () => {
    const gate = deferred();
    let left = 0;
    const engine = deafEngine(async function* () {
      try {
        await gate.promise;
        yield tokensOf("four");
        yield { type: "generate-end", reason: "aborted", cachedTokens: 7 };
      } finally {
        left += 1;
      }
    });
    bench = await startBench([], { engine });
    // Two calls side by side: the second is cut by what the first leaves of the budget.
    const shared = bench.gateway.createSession({ budgets: { maxSampledTokens: 7 } });
    const alone = bench.gateway.createSession();
    const both = [1, 2].map(() => call(shared, "x", { max_tokens: 4 }));
    const overrun = call(alone, "x", { max_tokens: 3 });
    await waitUntil("the calls", () => engine.calls === 3);
    gate.resolve();
    await Promise.all(both);
    expect((await overrun).body.usage).toMatchObject({
      completion_tokens: 3,
      prompt_tokens_details: { cached_tokens: 7 },
    });
    const ofShared = bench.gateway.calls(shared.sessionId);
    const cut = ofShared.find((found) => found.sampledIds.length === 3);
    expect(cut).toMatchObject({ issues: ["truncated"], usage: { cachedTokens: 7 } });
    expect(bench.gateway.calls(alone.sessionId)[0]).toMatchObject({
      issues: ["count-mismatch", "truncated"],
      usage: { cachedTokens: 7 },
    });
    expect(left).toBe(3);
  });

  it("ends as cut even when the engine throws on being stopped", async () => {
    bench = await startBench([], {
      engine: deafEngine(async function* () {
        yield tokensOf("four");
        throw new Error("AbortError");
      }),
    });
    const grant = bench.gateway.createSession({ budgets: { maxSampledTokens: 3 } });
    expect((await call(grant, "x")).status).toBe(200);
    expect(bench.gateway.calls(grant.sessionId)[0]?.finishReason).toBe("length");
  });
});

describe("a part that throws when a call ends", () => {
  const fail = (): never => {
    throw new Error("broken part");
  };

  const ended = async ({ sessionId }: SessionGrant): Promise<void> => {
    await waitUntil("the end", () => bench.gateway.session(sessionId).inFlight === 0);
    await bench.gateway.closeSession(sessionId);
    await bench.gateway.pause();
    expect(bench.clock.pendingTimers).toBe(0);
  };

  it("the tape: the answer arrives, the loss is counted and told", async () => {
    const failures: string[] = [];
    bench = await startBench(() => ({ text: "ok" }), {
      createTape: (used) => Object.assign(createTape(used), { commit: fail }),
      onCaptureError: (error) => failures.push(error.message),
    });
    const grant = bench.gateway.createSession();
    expect((await call(grant, "x")).status).toBe(200);
    expect(bench.gateway.session(grant.sessionId).captureFailures).toBe(1);
    expect(bench.gateway.calls(grant.sessionId)).toHaveLength(1);
    expect(failures).toEqual(["broken part"]);
    await ended(grant);
  });

  it.each<[string, Partial<Dialect>, boolean]>([
    ["the whole answer", { writeTurn: fail }, false],
    [
      "the end of a stream",
      {
        createStreamWriter: (options) => ({ ...openAiChat.createStreamWriter(options), end: fail }),
      },
      true,
    ],
  ])(
    "the dialect, in %s: the client gets an error and the record exists",
    async (_, over, stream) => {
      bench = await startBench(() => ({ text: "ok" }), { dialects: [{ ...openAiChat, ...over }] });
      const grant = bench.gateway.createSession();
      const exchange = post(chatUrl(grant), grant.key, chatBody("x", { stream }));
      expect(await exchange.text).toContain("The gateway failed");
      expect(await exchange.status).toBe(stream ? 200 : 500);
      expect(bench.gateway.calls(grant.sessionId)[0]).toMatchObject({
        finishReason: "error",
        message: { parts: [{ type: "text", text: "ok" }] },
      });
      await ended(grant);
    },
  );

  it("the dialect, in answer and error: the connection breaks and the record exists", async () => {
    bench = await startBench(() => ({ text: "ok" }), {
      dialects: [{ ...openAiChat, writeTurn: fail, writeError: fail }],
    });
    const grant = bench.gateway.createSession();
    await expect(post(chatUrl(grant), grant.key, chatBody("x")).text).rejects.toThrow();
    expect(bench.gateway.calls(grant.sessionId)).toHaveLength(1);
    await ended(grant);
  });

  it("the dialect, in the early head of a stream: the call is stopped", async () => {
    bench = await startBench(() => ({ text: "ok", wait: new Promise(() => {}) }), {
      dialects: [
        {
          ...openAiChat,
          createStreamWriter: (options) => ({
            ...openAiChat.createStreamWriter(options),
            start: fail,
          }),
        },
      ],
    });
    const grant = bench.gateway.createSession();
    const exchange = post(chatUrl(grant), grant.key, chatBody("x", { stream: true }));
    await waitUntil("the call", () => bench.engine.active === 1);
    await bench.clock.advance(2000);
    expect(await exchange.text).toContain("The answer cannot be written");
    await ended(grant);
  });

  it("the record: the answer arrives and the loss is counted", async () => {
    const dialect = Object.defineProperty({ ...openAiChat }, "id", { get: fail });
    bench = await startBench(() => ({ text: "ok" }), { dialects: [dialect] });
    const grant = bench.gateway.createSession();
    expect((await call(grant, "x")).status).toBe(200);
    expect(bench.gateway.session(grant.sessionId)).toMatchObject({ captureFailures: 1 });
    expect(bench.gateway.calls(grant.sessionId)).toEqual([]);
    await ended(grant);
  });

  it("the listener for lost records: the session still closes", async () => {
    bench = await startBench(() => ({ text: "ok" }), {
      store: { ...createMemoryStore(), append: () => Promise.reject(new Error("disk full")) },
      onCaptureError: fail,
    });
    const grant = bench.gateway.createSession();
    await call(grant, "x");
    await ended(grant);
    expect(bench.gateway.session(grant.sessionId).captureFailures).toBe(1);
  });
});
