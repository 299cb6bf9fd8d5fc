/** The inference server over real HTTP, with the official openai SDK, a scripted engine and the real renderer. */
import { request } from "node:http";
import { GimbalError } from "@gimbal-rl/core";
import { loadRenderer } from "@gimbal-rl/renderers";
import {
  createScriptedEngine,
  createTestModelTexts,
  type EngineScript,
  type ScriptedEngine,
  waitUntil,
} from "@gimbal-rl/testkit";
import OpenAI from "openai";
import { describe, expect, test } from "vitest";
import {
  createInferenceServer,
  type InferenceServer,
  type InferenceServerOptions,
} from "../src/inference-server.js";

const renderer = loadRenderer(createTestModelTexts());
const encode = renderer.tokenizer.encode.bind(renderer.tokenizer);
const stopId = renderer.stopIds[0] ?? -1;

interface Bench extends AsyncDisposable {
  readonly server: InferenceServer;
  readonly engine: ScriptedEngine;
  readonly client: OpenAI;
}

async function start(
  script: EngineScript,
  options: Partial<InferenceServerOptions> & { readonly contextLength?: number } = {},
): Promise<Bench> {
  const { contextLength = 8192, ...rest } = options;
  const info = { contextLength, vocabularySize: renderer.tokenizer.vocabularySize };
  const engine = createScriptedEngine({ encode, script, info });
  const server = await createInferenceServer({ engine, renderer, model: "tiny", seed: 7, ...rest });
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  return {
    server,
    engine,
    client,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** Fields of this server that the SDK's types do not know. */
interface Extra {
  readonly prompt_token_ids?: number[];
  readonly token_ids?: number[];
}

const messages = [{ role: "user" as const, content: "Hello" }];
const tools = [
  {
    type: "function" as const,
    function: { name: "read", parameters: { type: "object", properties: {} } },
  },
];
const callText = '<tool_call>\n{"name": "read", "arguments": {"path": 1.0}}\n</tool_call>';

describe("chat", () => {
  test("an answer has text, usage that equals the ids, and the model's name", async () => {
    await using bench = await start([{ text: "Hi there", cachedTokens: 3 }]);
    const answer = await bench.client.chat.completions.create({ model: "any", messages });
    expect(answer.choices[0]?.message.content).toBe("Hi there");
    expect(answer.choices[0]?.finish_reason).toBe("stop");
    expect(answer.model).toBe("tiny");
    const prompt = bench.engine.requests[0]?.promptIds.length ?? 0;
    expect(answer.usage).toMatchObject({
      prompt_tokens: prompt,
      completion_tokens: 9,
      total_tokens: prompt + 9,
      prompt_tokens_details: { cached_tokens: 3 },
    });
  });

  test("ids and log-probabilities come back as the engine gave them", async () => {
    const logprobs = [-0.5, -0.25, -0.125];
    await using bench = await start([{ text: "Hi", logprobs }]);
    const answer = await bench.client.chat.completions.create({
      model: "m",
      messages,
      logprobs: true,
      ...{ return_token_ids: true },
    });
    const extra = answer as Extra;
    const choice = answer.choices[0] as (typeof answer.choices)[0] & Extra;
    expect(extra.prompt_token_ids).toEqual(bench.engine.requests[0]?.promptIds);
    expect(choice.token_ids).toEqual([...encode("Hi"), stopId]);
    expect(choice.logprobs?.content?.map((entry) => entry.logprob)).toEqual(logprobs);
    expect(choice.logprobs?.content?.[0]).toMatchObject({
      token: "H",
      token_id: 72,
      bytes: [72],
      top_logprobs: [],
    });
  });

  test("a stream, put together, is the whole answer: text, call, ids, log-probabilities, usage", async () => {
    const turn = { text: `Reading.\n${callText}` };
    await using bench = await start(() => turn);
    const request = {
      model: "m",
      messages,
      tools,
      logprobs: true,
      seed: 5,
      ...{ return_token_ids: true },
    };
    const whole = await bench.client.chat.completions.create(request);
    const stream = await bench.client.chat.completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let args = "";
    let finish: string | null = null;
    let usage: unknown = null;
    let promptIds: number[] | undefined;
    const ids: number[] = [];
    const logprobs: number[] = [];
    for await (const chunk of stream) {
      promptIds ??= (chunk as Extra).prompt_token_ids;
      usage = chunk.usage ?? usage;
      const choice = chunk.choices[0];
      if (choice === undefined) continue;
      text += choice.delta.content ?? "";
      args += choice.delta.tool_calls?.[0]?.function?.arguments ?? "";
      finish = choice.finish_reason ?? finish;
      ids.push(...((choice as Extra).token_ids ?? []));
      logprobs.push(...(choice.logprobs?.content?.map((entry) => entry.logprob) ?? []));
    }
    const choice = whole.choices[0];
    const call = choice?.message.tool_calls?.[0];
    expect(call?.type === "function" ? call.function.arguments : null).toBe('{"path": 1.0}');
    expect(args).toBe('{"path": 1.0}');
    expect(text).toBe(choice?.message.content);
    expect(finish).toBe("tool_calls");
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(usage).toEqual(whole.usage);
    expect(ids).toEqual((choice as Extra).token_ids);
    expect(promptIds).toEqual((whole as Extra).prompt_token_ids);
    expect(logprobs).toEqual(choice?.logprobs?.content?.map((entry) => entry.logprob));
  });

  test("sampling fields reach the engine; without them the API's defaults do", async () => {
    await using bench = await start(() => ({ text: "ok" }));
    await bench.client.chat.completions.create({
      model: "m",
      messages,
      temperature: 0.5,
      top_p: 0.9,
      max_tokens: 7,
      seed: -1,
      stop: ["</think>"],
      ...{ top_k: 4, stop_token_ids: [10] },
    });
    await bench.client.chat.completions.create({ model: "m", messages });
    expect(bench.engine.requests[0]).toMatchObject({
      sampling: { temperature: 0.5, topP: 0.9, topK: 4 },
      maxTokens: 7,
      seed: 0xffffffff,
      stopIds: [...renderer.stopIds, ...encode("</think>", { allowSpecial: true }), 10],
    });
    expect(bench.engine.requests[1]).toMatchObject({
      sampling: { temperature: 1, topP: 1, topK: 0 },
      maxTokens: 4096,
    });
  });

  test("a top_p of 0 is the most likely id alone, in chat and in completions", async () => {
    await using bench = await start(() => ({ text: "ok" }));
    await bench.client.chat.completions.create({ model: "m", messages, top_p: 0 });
    await bench.client.completions.create({ model: "m", prompt: "Hi", top_p: 0 });
    expect(bench.engine.requests.map((asked) => asked.sampling)).toEqual(
      Array(2).fill({ temperature: 1, topP: 1, topK: 1 }),
    );
  });

  test("seeds of repeated prompts differ, and are the same on the next server with that seed", async () => {
    const seeds: (number | undefined)[][] = [];
    for (const order of [
      ["a", "a", "b"],
      ["b", "a", "a"],
    ]) {
      await using bench = await start(() => ({ text: "ok" }));
      for (const content of order) {
        await bench.client.chat.completions.create({
          model: "m",
          messages: [{ role: "user", content }],
        });
      }
      const own = order.map((content, i) => ({ content, seed: bench.engine.requests[i]?.seed }));
      own.sort((x, y) => (x.content < y.content ? -1 : x.content > y.content ? 1 : 0));
      seeds.push(own.map(({ seed }) => seed));
    }
    expect(new Set(seeds[0]).size).toBe(3);
    expect(seeds[1]).toEqual(seeds[0]);
  });

  test("what would change the meaning is refused by name", async () => {
    await using bench = await start(() => ({ text: "ok" }));
    const cases: [string, Record<string, unknown>][] = [
      ["n", { n: 2 }],
      ["top_logprobs", { logprobs: true, top_logprobs: 3 }],
      ["tool_choice", { tools, tool_choice: "required" }],
      ["stop", { stop: "two tokens" }],
      ["stop_token_ids[0]", { stop_token_ids: [99999] }],
      ["return_token_ids", { return_token_ids: "yes" }],
    ];
    for (const [param, fields] of cases) {
      const failed = bench.client.chat.completions.create({ model: "m", messages, ...fields });
      await expect(failed).rejects.toMatchObject({ status: 400, param });
    }
    expect(bench.engine.requests).toHaveLength(0);
  });

  test("a prompt that does not fit has the vendor's code, however large", async () => {
    await using bench = await start(() => ({ text: "ok" }), { contextLength: 64 });
    for (const content of ["x".repeat(100), "x".repeat(1_000_000)]) {
      const failed = bench.client.chat.completions.create({
        model: "m",
        messages: [{ role: "user", content }],
      });
      await expect(failed).rejects.toMatchObject({ status: 400, code: "context_length_exceeded" });
    }
  });

  test("a client that leaves stops the generation, streaming or not", async () => {
    await using bench = await start(() => ({
      text: "never",
      wait: new Promise(() => {}),
      waitAfter: 2,
    }));
    for (const [i, stream] of [true, false].entries()) {
      const controller = new AbortController();
      const asked = bench.client.chat.completions.create(
        { model: "m", messages, stream },
        { signal: controller.signal },
      );
      asked.catch(() => {});
      await waitUntil("a running generation", () => bench.engine.active === 1);
      if (stream) await asked;
      controller.abort();
      await waitUntil("an aborted generation", () => bench.engine.aborted === i + 1);
    }
    expect(bench.engine.active).toBe(0);
  });

  test("an engine failure before the first token is a 503, after it the stream's own error", async () => {
    const error = new GimbalError("engine-failed", "The worker died.");
    await using bench = await start(({ callIndex }) => ({
      text: "Hello",
      error,
      errorAfter: callIndex === 0 ? 0 : 2,
    }));
    const first = bench.client.chat.completions.create({ model: "m", messages, stream: true });
    await expect(first).rejects.toMatchObject({ status: 503 });
    const second = await bench.client.chat.completions.create({
      model: "m",
      messages,
      stream: true,
    });
    await expect(
      (async () => {
        for await (const _ of second);
      })(),
    ).rejects.toThrow("The worker died.");
  });
});

describe("completions", () => {
  test("ids in, ids out, with log-probabilities and the seed asked for", async () => {
    const promptIds = [72, 105, stopId];
    await using bench = await start([{ text: "ab", logprobs: [-1, -2, -3] }]);
    const answer = await bench.client.completions.create({
      model: "m",
      prompt: promptIds,
      max_tokens: 5,
      temperature: 0.7,
      logprobs: 1,
      seed: 42,
      ...{ return_token_ids: true },
    });
    const choice = answer.choices[0] as (typeof answer.choices)[0] & Extra;
    expect(choice.text).toBe("ab");
    expect(choice.token_ids).toEqual([97, 98, stopId]);
    expect(choice.prompt_token_ids).toEqual(promptIds);
    expect((answer as Extra).prompt_token_ids).toEqual(promptIds);
    expect(choice.logprobs?.token_logprobs).toEqual([-1, -2, -3]);
    expect(choice.logprobs?.tokens?.slice(0, 2)).toEqual(["a", "b"]);
    expect(choice.logprobs?.text_offset).toEqual([0, 1, 2]);
    expect(bench.engine.requests[0]).toMatchObject({
      promptIds,
      maxTokens: 5,
      seed: 42,
      sampling: { temperature: 0.7 },
    });
  });

  test("text in: special tokens are read as such, 16 tokens by default, as the API says", async () => {
    await using bench = await start([{ text: "abcdefghijklmnopqrstuvwxyz" }]);
    const answer = await bench.client.completions.create({ model: "m", prompt: "<|im_end|>x" });
    expect(bench.engine.requests[0]?.promptIds).toEqual([stopId, 120]);
    expect(answer.choices[0]).toMatchObject({
      text: "abcdefghijklmnop",
      finish_reason: "length",
      logprobs: null,
    });
  });

  test("a stream holds the same text and ids as the whole answer, half characters included", async () => {
    await using bench = await start(() => ({ text: "né €" }));
    const request = {
      model: "m",
      prompt: "p",
      logprobs: 0,
      seed: 1,
      ...{ return_token_ids: true },
    };
    const whole = await bench.client.completions.create(request);
    const stream = await bench.client.completions.create({
      ...request,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let finish: string | null = null;
    const ids: number[] = [];
    const logprobs: number[] = [];
    let usage: unknown = null;
    for await (const chunk of stream) {
      usage = chunk.usage ?? usage;
      const choice = chunk.choices[0] as ((typeof chunk.choices)[0] & Extra) | undefined;
      if (choice === undefined) continue;
      text += choice.text;
      finish = choice.finish_reason ?? finish;
      ids.push(...(choice.token_ids ?? []));
      logprobs.push(...(choice.logprobs?.token_logprobs ?? []));
    }
    const choice = whole.choices[0];
    expect(text).toBe("né €");
    expect(choice?.text).toBe(text);
    expect(finish).toBe("stop");
    expect(ids).toEqual((choice as Extra | undefined)?.token_ids);
    expect(logprobs).toEqual(choice?.logprobs?.token_logprobs);
    expect(usage).toEqual(whole.usage);
  });

  test("bad prompts and unserved fields are refused by name", async () => {
    await using bench = await start(() => ({ text: "ok" }));
    const cases: [string, Record<string, unknown>][] = [
      ["prompt", {}],
      ["prompt", { prompt: "" }],
      ["prompt", { prompt: ["a", "b"] }],
      ["prompt[1]", { prompt: [1, 99999] }],
      ["prompt[0]", { prompt: [1.5] }],
      ["n", { prompt: "a", n: 2 }],
      ["echo", { prompt: "a", echo: true }],
      ["logprobs", { prompt: "a", logprobs: 5 }],
      ["temperature", { prompt: "a", temperature: -1 }],
    ];
    for (const [param, fields] of cases) {
      const failed = bench.client.post("/completions", { body: { model: "m", ...fields } });
      await expect(failed, JSON.stringify(fields)).rejects.toMatchObject({ status: 400, param });
    }
    expect(bench.engine.requests).toHaveLength(0);
  });
});

describe("the server", () => {
  test("models are listed and found; health tells of a failed engine", async () => {
    let failure: Error | null = null;
    await using bench = await start([], { failure: () => failure });
    expect((await bench.client.models.list()).data.map(({ id }) => id)).toEqual(["tiny"]);
    expect((await bench.client.models.retrieve("tiny")).id).toBe("tiny");
    expect((await fetch(`${bench.server.url}/health`)).status).toBe(200);
    failure = new Error("gone");
    const health = await fetch(`${bench.server.url}/health`);
    expect(health.status).toBe(503);
    expect(await health.json()).toEqual({ status: "failed", message: "gone" });
  });

  test("with a key, everything but health needs it", async () => {
    await using bench = await start(() => ({ text: "ok" }), { apiKey: "secret" });
    await expect(
      bench.client.chat.completions.create({ model: "m", messages }),
    ).rejects.toMatchObject({ status: 401, code: "invalid_api_key" });
    expect((await fetch(`${bench.server.url}/health`)).status).toBe(200);
    const client = new OpenAI({ baseURL: `${bench.server.url}/v1`, apiKey: "secret" });
    const answer = await client.chat.completions.create({ model: "m", messages });
    expect(answer.choices[0]?.message.content).toBe("ok");
  });

  test("a target that is no URL is a 400, as on the control port", async () => {
    await using bench = await start(() => ({ text: "ok" }));
    const { port } = new URL(bench.server.url);
    const status = await new Promise((resolve, reject) => {
      request({ port, host: "127.0.0.1", path: "//" }, (response) => {
        response.resume();
        resolve(response.statusCode);
      })
        .on("error", reject)
        .end();
    });
    expect(status).toBe(400);
  });

  test("unknown paths, broken JSON, large bodies and too many requests are errors of the API's shape", async () => {
    await using bench = await start(() => ({ text: "x", wait: new Promise(() => {}) }), {
      limits: { maxBodyBytes: 1000, maxOpenRequests: 1 },
    });
    const post = async (path: string, body: string): Promise<[number, unknown]> => {
      const answer = await fetch(`${bench.server.url}${path}`, { method: "POST", body });
      return [answer.status, ((await answer.json()) as { error: unknown }).error];
    };
    const chat = "/v1/chat/completions";
    expect(await post("/v1/nothing", "{}")).toMatchObject([404, { code: "not_found" }]);
    expect(await post(chat, "{")).toMatchObject([400, { type: "invalid_request_error" }]);
    expect(await post("/v1/completions", "[]")).toMatchObject([400, { param: "body" }]);
    expect(await post(chat, "x".repeat(2000))).toMatchObject([400, {}]);
    const controller = new AbortController();
    const first = bench.client.chat.completions.create(
      { model: "m", messages },
      { signal: controller.signal },
    );
    first.catch(() => {});
    await waitUntil("a running generation", () => bench.engine.active === 1);
    expect(await post(chat, JSON.stringify({ model: "m", messages }))).toMatchObject([
      503,
      { code: "unavailable" },
    ]);
    controller.abort();
  });

  test("a port in use is named", async () => {
    await using bench = await start([]);
    const port = Number(new URL(bench.server.url).port);
    await expect(start([], { port })).rejects.toMatchObject({ code: "port-in-use" });
  });

  test("disposing stops what runs and answers its clients", async () => {
    const bench = await start(() => ({ text: "x", wait: new Promise(() => {}) }));
    const asked = bench.client.chat.completions.create({ model: "m", messages });
    asked.catch(() => {});
    await waitUntil("a running generation", () => bench.engine.active === 1);
    await bench[Symbol.asyncDispose]();
    await expect(asked).rejects.toMatchObject({ status: 503 });
    expect(bench.engine.active).toBe(0);
  });
});
