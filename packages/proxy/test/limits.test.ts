/** Budgets: what a session may use, and how a harness is told to stop. */
import { waitUntil } from "@gimbal-rl/testkit";
import OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { type Bench, call, deferred, renderer, sdkFor, startBench } from "./support.js";

let bench: Bench;
afterEach(() => bench[Symbol.asyncDispose]());

const errorOf = (body: Record<string, unknown>): Record<string, unknown> =>
  body.error as Record<string, unknown>;

describe("a session whose call budget is used up", () => {
  it("is told to stop in one request by the SDK, and the session says why", async () => {
    bench = await startBench(() => ({ text: "ok" }));
    const grant = bench.gateway.createSession({ budgets: { maxCalls: 2 } });
    const client = sdkFor(grant, 2);
    const ask = (): Promise<unknown> =>
      client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "x" }] });
    await ask();
    await ask();
    const error: unknown = await ask().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error" });
    if (!(error instanceof OpenAI.APIError)) throw error;
    expect(error.headers?.get("x-should-retry")).toBe("false");
    expect(bench.gateway.session(grant.sessionId)).toMatchObject({
      calls: 2,
      limitHits: [{ limit: "call-budget", hits: 1, atCall: 2 }],
      refusals: { "budget-exhausted": 1 },
    });
  });
});

describe("the budget of sampled tokens", () => {
  it("clamps max_tokens to what is left, cuts the last call and then refuses", async () => {
    bench = await startBench(() => ({ text: "0123456789" }));
    const grant = bench.gateway.createSession({ budgets: { maxSampledTokens: 15 } });
    const one = await call(grant, "x", { max_tokens: 100 });
    const two = await call(grant, "x", { max_tokens: 100 });
    const three = await call(grant, "x");
    expect([one.status, two.status, three.status]).toEqual([200, 200, 400]);
    expect(bench.engine.requests.map((found) => found.maxTokens)).toEqual([15, 4]);
    const [, cut] = bench.gateway.calls(grant.sessionId);
    expect(cut).toMatchObject({ finishReason: "length", issues: ["truncated"] });
    expect(bench.gateway.session(grant.sessionId)).toMatchObject({
      sampledTokens: 15,
      limitHits: [{ limit: "token-budget", hits: 2, atCall: 2 }],
    });
  });

  it("holds for calls that run side by side", async () => {
    const gate = deferred();
    bench = await startBench(() => ({ text: "0123456789", wait: gate.promise }));
    const grant = bench.gateway.createSession({ budgets: { maxSampledTokens: 15 } });
    const both = [call(grant, "x"), call(grant, "y")];
    await waitUntil("both", () => bench.engine.active === 2);
    gate.resolve();
    await Promise.all(both);
    expect(bench.gateway.session(grant.sessionId).sampledTokens).toBe(15);
    const reasons = bench.gateway.calls(grant.sessionId).map((found) => found.finishReason);
    expect(reasons).toContain("length");
  });

  it("of one call is a ceiling, and reaching it is no limit hit", async () => {
    bench = await startBench(() => ({ text: "0123456789" }));
    const grant = bench.gateway.createSession({ budgets: { maxTokensPerCall: 5 } });
    await call(grant, "x", { max_completion_tokens: 50 });
    expect(bench.engine.requests[0]?.maxTokens).toBe(5);
    expect(bench.gateway.session(grant.sessionId).limitHits).toEqual([]);
  });
});

describe("a prompt that does not fit", () => {
  it("is the dialect's context error, whether measured or estimated, and never reaches the engine", async () => {
    bench = await startBench(() => ({ text: "ok" }));
    const grant = bench.gateway.createSession({ budgets: { maxContextTokens: 100 } });
    for (const text of ["x".repeat(90), "x".repeat(5000)]) {
      const { status, body } = await call(grant, text);
      expect(status).toBe(400);
      expect(errorOf(body)).toMatchObject({ code: "context_length_exceeded" });
    }
    expect(bench.engine.requests).toHaveLength(0);
    expect(bench.gateway.session(grant.sessionId).limitHits).toEqual([
      { limit: "context-overflow", hits: 2, atCall: 0 },
    ]);
  });

  it("leaves the completion what the context leaves", async () => {
    bench = await startBench(() => ({ text: "0123456789" }));
    const prompt = renderer.render({
      messages: [{ role: "user", parts: [{ type: "text", text: "x" }] }],
      tools: [],
    }).ids.length;
    const grant = bench.gateway.createSession({ budgets: { maxContextTokens: prompt + 3 } });
    const { body } = await call(grant, "x");
    expect(body.usage).toMatchObject({ prompt_tokens: prompt, completion_tokens: 3 });
    expect(bench.gateway.session(grant.sessionId).limitHits).toMatchObject([
      { limit: "context-overflow" },
    ]);
  });
});

describe("the wall clock", () => {
  it("runs from the first call and then refuses", async () => {
    bench = await startBench(() => ({ text: "ok" }));
    const grant = bench.gateway.createSession({ budgets: { wallClockMs: 1000 } });
    await bench.clock.advance(5000);
    expect((await call(grant, "x")).status).toBe(200);
    await bench.clock.advance(1000);
    expect((await call(grant, "x")).status).toBe(400);
    expect(bench.gateway.session(grant.sessionId).limitHits).toMatchObject([
      { limit: "wall-clock" },
    ]);
  });
});

describe("what cannot be honoured", () => {
  it.each([
    [{ tool_choice: "required" }, "tool_choice"],
    [{ stop: ["STOP"] }, "stop"],
    [{ n: 2 }, "n"],
  ])("%j is refused by name", async (extra, field) => {
    bench = await startBench(() => ({ text: "ok" }));
    const grant = bench.gateway.createSession();
    const { status, body } = await call(grant, "x", {
      tools: [{ type: "function", function: { name: "f", parameters: {} } }],
      ...extra,
    });
    expect(status).toBe(400);
    expect(errorOf(body).message).toContain(field);
    expect(bench.gateway.session(grant.sessionId).calls).toBe(0);
  });

  it("a stop string that is one token of the vocabulary is honoured", async () => {
    bench = await startBench(() => ({ text: "ok" }));
    const grant = bench.gateway.createSession();
    await call(grant, "x", { stop: ["</think>"] });
    const stopIds = bench.engine.requests[0]?.stopIds ?? [];
    expect(stopIds.at(-1)).toBe(renderer.tokenizer.tokenToId("</think>"));
    expect(stopIds.slice(0, -1)).toEqual(renderer.stopIds);
  });
});
