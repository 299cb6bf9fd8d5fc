/** The openai SDK against the gateway: plain, streamed, and in a tool loop. */
import type { CapturedCall } from "@gimbal-rl/core";
import { scriptedLogprobs } from "@gimbal-rl/testkit";
import type OpenAI from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { type Bench, readTool, renderer, sdkFor, startBench } from "./support.js";

let bench: Bench;
afterEach(() => bench[Symbol.asyncDispose]());

const encode = (text: string): number[] => renderer.tokenizer.encode(text, { allowSpecial: true });
const ask = (content: string): OpenAI.ChatCompletionMessageParam[] => [{ role: "user", content }];

describe("a plain call", () => {
  it("answers with the sampled text and true usage, and leaves a complete record", async () => {
    bench = await startBench([{ text: "Grüße!", cachedTokens: 7 }]);
    const grant = bench.gateway.createSession();
    const answer = await sdkFor(grant).chat.completions.create({
      model: "some-name",
      messages: ask("Hello"),
      temperature: 0.5,
      max_completion_tokens: 100,
    });
    const sampled = encode("Grüße!<|im_end|>");
    const prompt = encode("<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n");
    expect(answer.model).toBe("some-name");
    expect(answer.choices[0]?.message.content).toBe("Grüße!");
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    expect(answer.usage?.prompt_tokens).toBe(prompt.length);
    expect(answer.usage?.completion_tokens).toBe(sampled.length);
    expect(bench.gateway.calls(grant.sessionId)).toEqual([
      {
        callId: `${grant.sessionId}.0`,
        sessionId: grant.sessionId,
        attemptId: null,
        index: 0,
        dialect: "openai-chat",
        captureMode: "tokens",
        model: "some-name",
        stream: false,
        requestBlob: null,
        responseBlob: null,
        conversation: {
          messages: [{ role: "user", parts: [{ type: "text", text: "Hello" }] }],
          tools: [],
        },
        message: { role: "assistant", parts: [{ type: "text", text: "Grüße!" }] },
        promptIds: prompt,
        sampledIds: sampled,
        logprobs: scriptedLogprobs(sampled),
        policyRuns: [{ policyVersion: "policy-0", tokens: sampled.length }],
        samplingAsked: { temperature: 0.5, maxTokens: 100 },
        samplingApplied: { temperature: 0.5, topP: 1, topK: 0, maxTokens: 100 },
        seed: expect.any(Number),
        finishReason: "stop",
        usage: {
          promptTokens: prompt.length,
          completionTokens: sampled.length,
          cachedTokens: 7,
        },
        tape: { parentCallId: null, reusedTokens: 0, rewritten: [], forkReason: null },
        volatile: [],
        ignoredFields: [],
        issues: [],
        retryOf: null,
        startedAtMs: bench.clock.nowMs(),
        firstTokenAtMs: bench.clock.nowMs(),
        endedAtMs: bench.clock.nowMs(),
      } satisfies Record<keyof CapturedCall, unknown>,
    ]);
  });

  it("that asks for a top_p of 0 gets the most likely ids, and the record says both", async () => {
    bench = await startBench([{ text: "a" }]);
    const grant = bench.gateway.createSession();
    await sdkFor(grant).chat.completions.create({ model: "m", messages: ask("x"), top_p: 0 });
    expect(bench.engine.requests[0]?.sampling).toEqual({ temperature: 1, topP: 1, topK: 1 });
    expect(bench.gateway.calls(grant.sessionId)[0]).toMatchObject({
      samplingAsked: { topP: 0 },
      samplingApplied: { temperature: 1, topP: 1, topK: 1 },
    });
  });

  it("of a training session is sampled as the run says and records what was asked", async () => {
    bench = await startBench([{ text: "a" }], { sampling: { temperature: 0.8, topP: 0.5 } });
    const grant = bench.gateway.createSession({ training: true });
    await sdkFor(grant).chat.completions.create({
      model: "m",
      messages: ask("x"),
      temperature: 0,
      top_p: 0.1,
      seed: 5,
    });
    const [record] = bench.gateway.calls(grant.sessionId);
    expect(bench.engine.requests[0]?.sampling).toEqual({ temperature: 0.8, topP: 1, topK: 0 });
    expect(record?.samplingAsked).toEqual({ temperature: 0, topP: 0.1, seed: 5 });
    expect(record?.samplingApplied).toMatchObject({ temperature: 0.8, topP: 1, topK: 0 });
    expect(record?.seed).not.toBe(5);
  });
});

describe("a stream", () => {
  const text =
    'I will look.\n<tool_call>\n{"name": "read", "arguments": {"path": "ä.txt", "n": 1.0}}\n</tool_call>';

  it.each([1, 3, 1000])(
    "of %d ids an event stores the same record as a plain call",
    async (chunkSize) => {
      bench = await startBench([{ text, chunkSize }]);
      const records: CapturedCall[] = [];
      const turns: unknown[] = [];
      for (const stream of [false, true]) {
        const grant = bench.gateway.createSession({
          attemptId: "a" as CapturedCall["attemptId"] & {},
        });
        const body = { model: "m", messages: ask("go"), tools: [readTool] };
        const client = sdkFor(grant);
        if (stream) {
          const runner = client.chat.completions.stream({
            ...body,
            stream_options: { include_usage: true },
          });
          const final = await runner.finalChatCompletion();
          turns.push([
            final.choices[0]?.message.content,
            final.choices[0]?.message.tool_calls?.[0],
          ]);
          expect(final.choices[0]?.finish_reason).toBe("tool_calls");
          expect(final.usage?.completion_tokens).toBe(encode(`${text}<|im_end|>`).length);
        } else {
          const final = await client.chat.completions.create(body);
          turns.push([
            final.choices[0]?.message.content,
            final.choices[0]?.message.tool_calls?.[0],
          ]);
        }
        records.push(...bench.gateway.calls(grant.sessionId));
      }
      const comparable = records.map(({ callId: _c, sessionId: _s, stream: _t, ...rest }) => rest);
      expect(comparable[1]).toEqual(comparable[0]);
      expect(turns[1]).toMatchObject(turns[0] as object);
      expect(records[0]?.finishReason).toBe("tool-calls");
      expect(records[0]?.message?.parts.at(-1)).toMatchObject({
        name: "read",
        argumentsText: '{"path": "ä.txt", "n": 1.0}',
      });
    },
  );

  it("sends text as soon as it is sampled, long before the end", async () => {
    let release = (): void => {};
    const wait = new Promise<void>((resolve) => {
      release = resolve;
    });
    bench = await startBench([{ text: "first second", wait, waitAfter: 5 }]);
    const grant = bench.gateway.createSession();
    const stream = await sdkFor(grant).chat.completions.create({
      model: "m",
      messages: ask("x"),
      stream: true,
    });
    let seen = "";
    for await (const chunk of stream) {
      seen += chunk.choices[0]?.delta.content ?? "";
      if (seen === "first") release();
    }
    expect(seen).toBe("first second");
  });
});

describe("a tool loop", () => {
  it("continues the tape with the sampled ids although the SDK rewrites the arguments", async () => {
    const first =
      '<tool_call>\n{"name": "read", "arguments": {"path":  "a",  "n": 1.0}}\n</tool_call>';
    bench = await startBench([{ text: first }, { text: "It says hi." }]);
    const grant = bench.gateway.createSession({ training: true });
    const client = sdkFor(grant);
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: "system", content: "You fix things." },
      ...ask("What is in a?"),
    ];
    const one = await client.chat.completions.create({ model: "m", messages, tools: [readTool] });
    const message = one.choices[0]?.message;
    const toolCall = message?.tool_calls?.[0];
    if (message === undefined || toolCall?.type !== "function") throw new Error("no tool call");
    // What every JavaScript harness does: parse and print again.
    toolCall.function.arguments = JSON.stringify(JSON.parse(toolCall.function.arguments));
    expect(toolCall.function.arguments).toBe('{"path":"a","n":1}');
    messages.push(message, { role: "tool", tool_call_id: toolCall.id, content: "hi" });
    const two = await client.chat.completions.create({ model: "m", messages, tools: [readTool] });
    expect(two.choices[0]?.message.content).toBe("It says hi.");

    const [a, b] = bench.gateway.calls(grant.sessionId);
    if (a === undefined || b === undefined) throw new Error("two calls expected");
    expect(b.promptIds.slice(0, a.promptIds.length + a.sampledIds.length)).toEqual([
      ...a.promptIds,
      ...a.sampledIds,
    ]);
    expect(b.tape).toEqual({
      parentCallId: a.callId,
      reusedTokens: a.promptIds.length + a.sampledIds.length,
      rewritten: [toolCall.id],
      forkReason: null,
    });
    expect(renderer.tokenizer.decode(b.promptIds)).toContain(
      "<tool_response>\nhi\n</tool_response>",
    );
    expect(bench.engine.requests[1]?.promptIds).toEqual(b.promptIds);
    expect(bench.gateway.session(grant.sessionId)).toMatchObject({
      calls: 2,
      inFlight: 0,
      sampledTokens: a.sampledIds.length + b.sampledIds.length,
      captureFailures: 0,
    });
  });

  it("gives every call its own id, the same ids when the attempt is run again", async () => {
    const twice = [1, 2]
      .map((n) => `<tool_call>\n{"name": "read", "arguments": {"path": "${n}"}}\n</tool_call>`)
      .join("\n");
    bench = await startBench([{ text: twice }, { text: twice }]);
    const idsOf = async (): Promise<(string | undefined)[]> => {
      const grant = bench.gateway.createSession({
        attemptId: "a1" as CapturedCall["attemptId"] & {},
      });
      const ids: (string | undefined)[] = [];
      for (let i = 0; i < 2; i += 1) {
        const answer = await sdkFor(grant).chat.completions.create({
          model: "m",
          messages: ask("x"),
          tools: [readTool],
        });
        ids.push(...(answer.choices[0]?.message.tool_calls ?? []).map((found) => found.id));
      }
      return ids;
    };
    const ids = await idsOf();
    expect(new Set(ids).size).toBe(4);
    expect(await idsOf()).toEqual(ids);
  });
});

describe("a turn that is not a clean call", () => {
  it.each([false, true])(
    "goes out as text when its arguments are broken (stream: %s), flagged",
    async (stream) => {
      const broken = '<tool_call>\n{"name": "read", "arguments": {"path": \n</tool_call>';
      bench = await startBench([{ text: broken }]);
      const grant = bench.gateway.createSession();
      const body = { model: "m", messages: ask("x"), tools: [readTool] };
      const client = sdkFor(grant);
      const final = stream
        ? await client.chat.completions.stream(body).finalChatCompletion()
        : await client.chat.completions.create(body);
      expect(final.choices[0]?.finish_reason).toBe("stop");
      expect(final.choices[0]?.message.tool_calls ?? []).toEqual([]);
      expect(final.choices[0]?.message.content).toContain('{"path":');
      expect(bench.gateway.calls(grant.sessionId)[0]).toMatchObject({
        issues: ["malformed-tool-call"],
        sampledIds: encode(`${broken}<|im_end|>`),
      });
    },
  );

  it("goes out as text with finish length when it is cut inside a call", async () => {
    const call = '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>';
    bench = await startBench([{ text: call }]);
    const grant = bench.gateway.createSession();
    const final = await sdkFor(grant).chat.completions.create({
      model: "m",
      messages: ask("x"),
      tools: [readTool],
      max_tokens: 30,
    });
    expect(final.choices[0]?.finish_reason).toBe("length");
    expect(final.choices[0]?.message.tool_calls ?? []).toEqual([]);
    expect(bench.gateway.calls(grant.sessionId)[0]).toMatchObject({
      issues: ["malformed-tool-call", "truncated"],
      finishReason: "length",
    });
  });

  it("is flagged when ids and log-probabilities differ in number or are no log-probabilities", async () => {
    const ids = encode("ab<|im_end|>");
    bench = await startBench([
      { ids, logprobs: [-1, -2], chunkSize: 3 },
      { ids, logprobs: [], chunkSize: 3 },
      { ids, logprobs: [-1, -2, 0.5] },
      { ids: [] },
    ]);
    const grant = bench.gateway.createSession();
    for (let i = 0; i < 4; i += 1) {
      await sdkFor(grant).chat.completions.create({ model: "m", messages: ask("x") });
    }
    expect(bench.gateway.calls(grant.sessionId).map((found) => found.issues)).toEqual([
      ["count-mismatch"],
      ["count-mismatch", "missing-logprobs"],
      ["missing-logprobs"],
      ["empty"],
    ]);
  });
});
