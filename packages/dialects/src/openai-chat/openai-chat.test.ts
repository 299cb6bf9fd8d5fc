import { readFileSync } from "node:fs";
import { GimbalError, type ToolCallPart, type TurnEvent, type Usage } from "@gimbal-rl/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CompleteTurn, WriterOptions } from "../dialect.js";
import { openAiChat } from "./openai-chat.js";

const options: WriterOptions = {
  responseId: "chatcmpl-1",
  model: "m",
  createdAt: 1,
  promptTokens: 3,
  includeUsage: true,
};
const usage: Usage = { promptTokens: 3, completionTokens: 2, cachedTokens: 1 };
const minimal = { model: "m", messages: [{ role: "user", content: "hi" }] };

function parse(body: unknown): ReturnType<typeof openAiChat.parseRequest> {
  return openAiChat.parseRequest(typeof body === "string" ? body : JSON.stringify(body));
}

function failure(body: unknown): string {
  try {
    parse(body);
  } catch (error) {
    if (GimbalError.is(error)) return `${error.code} ${error.details.field}: ${error.message}`;
    throw error;
  }
  return "accepted";
}

/** What a client puts together from a stream by the rules of the API. */
interface Assembled {
  content: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: string }[];
  finish: string | null;
  usage: unknown;
  done: boolean;
}

interface Delta {
  readonly content?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly function: { readonly name?: string; readonly arguments: string };
  }[];
}

function assemble(stream: string): Assembled {
  const out: Assembled = {
    content: "",
    reasoning: "",
    calls: [],
    finish: null,
    usage: null,
    done: false,
  };
  for (const block of stream.split("\n\n")) {
    if (block === "" || block.startsWith(":")) continue;
    expect(block.startsWith("data: ")).toBe(true);
    expect(block).not.toContain("\n");
    const data = block.slice(6);
    if (data === "[DONE]") {
      out.done = true;
      continue;
    }
    const chunk = JSON.parse(data);
    if (chunk.usage) out.usage = chunk.usage;
    for (const { delta, finish_reason: finish } of chunk.choices as {
      delta: Delta;
      finish_reason: string | null;
    }[]) {
      out.content += delta.content ?? "";
      out.reasoning += delta.reasoning_content ?? "";
      for (const piece of delta.tool_calls ?? []) {
        const call = out.calls[piece.index] ?? {
          id: piece.id ?? "",
          name: piece.function.name ?? "",
          arguments: "",
        };
        out.calls[piece.index] = call;
        call.arguments += piece.function.arguments;
      }
      out.finish = finish ?? out.finish;
    }
  }
  return out;
}

describe("routes", () => {
  test.each([
    ["POST", "/v1/chat/completions", { kind: "generate" }],
    ["POST", "/s/sk-gimbal-x/v1/chat/completions", { kind: "generate" }],
    ["POST", "/chat/completions/", { kind: "generate" }],
    ["GET", "/deep/prefix/v1/models", { kind: "models" }],
    ["GET", "/v1/chat/completions", null],
    ["POST", "/v1/responses", null],
    ["POST", "/v1/models", null],
  ])("%s %s", (method, path, expected) => {
    expect(openAiChat.route(method, path)).toEqual(expected);
  });
});

describe("requests", () => {
  test("a request recorded from Pi is read whole", () => {
    const file = new URL("../../../../fixtures/dialects/pi-0.74.2-chat.1.json", import.meta.url);
    const request = openAiChat.parseRequest(readFileSync(file, "utf8"));
    expect(request).toMatchObject({
      model: "fake-model",
      stream: true,
      includeUsage: true,
      toolChoice: "auto",
      sampling: { maxTokens: 16384 },
      ignoredFields: ["store", "reasoning_effort"],
    });
    const [first, second, third, fourth] = request.conversation.messages;
    expect(first).toMatchObject({ role: "system", wireRole: "developer" });
    expect(second).toEqual({
      role: "user",
      parts: [{ type: "text", text: "Write hello to out.txt using bash" }],
    });
    expect(third).toEqual({
      role: "assistant",
      parts: [
        { type: "reasoning", text: "thinking about it" },
        { type: "text", text: "Doing it" },
        {
          type: "tool-call",
          toolCallId: "call_7f8839dc0ba59359",
          name: "bash",
          argumentsText: '{"command":"echo hello > out.txt","description":"write file"}',
        },
      ],
    });
    expect(fourth).toEqual({
      role: "tool",
      toolCallId: "call_7f8839dc0ba59359",
      parts: [{ type: "text", text: "(no output)" }],
    });
    expect(request.conversation.tools.map(({ name }) => name)).toEqual([
      "read",
      "bash",
      "edit",
      "write",
    ]);
  });

  test("tool definitions and schemas are slices of the body", () => {
    const definition =
      '{ "type":"function", "function":{"name":"f","parameters":{"10":1.0,"9":12345678901234567890}} }';
    const request = parse(
      `{"tools":[ ${definition} ],"model":"m","messages":[{"role":"user","content":"x"}]}`,
    );
    expect(request.conversation.tools).toEqual([
      { name: "f", schemaText: '{"10":1.0,"9":12345678901234567890}', definitionText: definition },
    ]);
  });

  test("argument text arrives as it was sent, as a string or as an object", () => {
    const raw = '{"a": 1.0, "9": 2, "1": 12345678901234567890}';
    const call = (args: string): string =>
      `{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${args}}}]}]}`;
    for (const args of [JSON.stringify(raw), raw]) {
      expect(parse(call(args)).conversation.messages[0]?.parts).toEqual([
        { type: "tool-call", toolCallId: "c", name: "f", argumentsText: raw },
      ]);
    }
  });

  test("a string, one text part and null or empty content are read alike", () => {
    const contents = [
      "x",
      [{ type: "text", text: "x" }],
      [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }],
    ];
    for (const content of contents) {
      expect(
        parse({ ...minimal, messages: [{ role: "user", content }] }).conversation.messages,
      ).toEqual([{ role: "user", parts: [{ type: "text", text: "x" }] }]);
    }
    for (const content of [null, "", undefined, []]) {
      expect(
        parse({ ...minimal, messages: [{ role: "assistant", content }] }).conversation.messages[0]
          ?.parts,
      ).toEqual([]);
    }
  });

  test("tool results may be arrays, images pass as image parts", () => {
    const messages = [
      {
        role: "tool",
        tool_call_id: "c",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      {
        role: "user",
        content: [{ type: "image_url", image_url: { url: "data:x", detail: "low" } }],
      },
    ];
    expect(parse({ ...minimal, messages }).conversation.messages).toEqual([
      {
        role: "tool",
        toolCallId: "c",
        parts: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      { role: "user", parts: [{ type: "image", url: "data:x" }] },
    ]);
  });

  test("sampling wishes, stop, tool choice and limits are honoured", () => {
    const request = parse({
      ...minimal,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 5,
      seed: 7,
      max_tokens: 9,
      max_completion_tokens: 8,
      stop: ["a", "b"],
      n: 1,
      logit_bias: {},
      stream_options: null,
      tools: [{ type: "function", function: { name: "f" } }],
      tool_choice: { type: "function", function: { name: "f" } },
    });
    expect(request.sampling).toEqual({
      temperature: 0.5,
      topP: 0.9,
      topK: 5,
      seed: 7,
      maxTokens: 8,
    });
    expect(request).toMatchObject({
      stop: ["a", "b"],
      toolChoice: { name: "f" },
      stream: false,
      includeUsage: false,
    });
    expect(parse({ ...minimal, stop: "x", max_tokens: 9 })).toMatchObject({
      stop: ["x"],
      sampling: { maxTokens: 9 },
    });
  });

  test("unknown keys, parts and tools are ignored and named", () => {
    const request = parse({
      ...minimal,
      store: false,
      metadata: {},
      stream_options: { include_obfuscation: true },
      tools: [{ type: "web_search" }, { type: "function", function: { name: "f", strict: true } }],
      messages: [
        { role: "user", name: "u", content: [{ type: "text", text: "x" }, { type: "hologram" }] },
      ],
    });
    expect(request.ignoredFields).toEqual([
      "store",
      "metadata",
      "stream_options.include_obfuscation",
      "tools[] (type web_search)",
      "tools[].function.strict",
      "messages[].name",
      "messages[].content[] (type hologram)",
    ]);
    expect(request.conversation.tools).toHaveLength(1);
  });

  test.each([
    [{ n: 2 }, /^request-field-refused n: /],
    [{ logit_bias: { "1": 2 } }, /^request-field-refused logit_bias: /],
    [
      {
        response_format: {
          type: "json_schema",
          json_schema: { name: "x", strict: true, schema: {} },
        },
      },
      /^request-field-refused response_format: /,
    ],
    [{ modalities: ["text", "audio"] }, /^request-field-refused modalities: /],
    [{ functions: [] }, /^request-field-refused functions: /],
    [
      { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
      /^request-field-refused messages\[0\]\.content\[0\]: /,
    ],
    [
      { messages: [{ role: "system", content: [{ type: "image_url", image_url: "x" }] }] },
      /^request-field-refused messages\[0\]\.content: /,
    ],
    [{ messages: [] }, /^invalid-request messages: /],
    [{ messages: [{ role: "wizard", content: "x" }] }, /^invalid-request messages\[0\]\.role: /],
    [
      { messages: [{ role: "tool", content: "x" }] },
      /^invalid-request messages\[0\]\.tool_call_id: /,
    ],
    [
      { messages: [{ role: "user", content: 5 }] },
      /^invalid-request messages\[0\]\.content: .*found 5/,
    ],
    [
      { temperature: "hot" },
      /^invalid-request temperature: .*found "hot", expected a number from 0 to 2/,
    ],
    [
      { max_tokens: 0 },
      /^invalid-request max_tokens: .*found 0, expected an integer of at least 1/,
    ],
    [{ stream: "yes" }, /^invalid-request stream: /],
    [
      { tool_choice: { type: "function", function: { name: "nope" } } },
      /^invalid-request tool_choice\.function\.name: /,
    ],
    [{ model: undefined }, /^invalid-request model: /],
  ])("%j is refused by name", (fields, expected) => {
    expect(failure({ ...minimal, ...fields })).toMatch(expected);
  });

  test("a body that is no JSON object is a 400 with the position", () => {
    expect(failure('{"model": ')).toMatch(
      /^invalid-request undefined: Invalid JSON at position 10/,
    );
    expect(failure("[]")).toMatch(/^invalid-request body: .*found an array/);
  });

  test("a strict flag that is false, or a format without schema, is not refused", () => {
    expect(failure({ ...minimal, response_format: { type: "text" } })).toBe("accepted");
    expect(
      failure({
        ...minimal,
        response_format: { type: "json_schema", json_schema: { name: "x", strict: false } },
      }),
    ).toBe("accepted");
  });
});

const callArbitrary: fc.Arbitrary<ToolCallPart> = fc.record({
  type: fc.constant("tool-call" as const),
  toolCallId: fc.uuid(),
  name: fc.string({ minLength: 1 }),
  argumentsText: fc.jsonValue().map((value) => JSON.stringify({ value })),
});
const eventArbitrary: fc.Arbitrary<TurnEvent> = fc.oneof(
  fc.record({ type: fc.constant("text-delta" as const), text: fc.string({ unit: "grapheme" }) }),
  fc.record({ type: fc.constant("reasoning-delta" as const), text: fc.string() }),
  callArbitrary.map((call) => ({ type: "tool-call" as const, call })),
);

function streamOf(events: readonly TurnEvent[], finish: "stop" | "length" | "tool-calls"): string {
  const writer = openAiChat.createStreamWriter(options);
  const middle = events.map((event) => writer.event(event) + writer.heartbeat());
  return writer.start() + middle.join("") + writer.end(finish, usage);
}

function turnOf(
  events: readonly TurnEvent[],
  finishReason: CompleteTurn["finishReason"],
): CompleteTurn {
  let text = "";
  let reasoning = "";
  const toolCalls: ToolCallPart[] = [];
  for (const event of events) {
    if (event.type === "text-delta") text += event.text;
    else if (event.type === "reasoning-delta") reasoning += event.text;
    else toolCalls.push(event.call);
  }
  return { text, reasoning, toolCalls, finishReason, usage };
}

describe("answers", () => {
  test("a stream and a whole answer of the same turn agree", () => {
    const finishes = fc.constantFrom("stop" as const, "length" as const, "tool-calls" as const);
    fc.assert(
      fc.property(fc.array(eventArbitrary, { maxLength: 8 }), finishes, (events, finish) => {
        const stream = assemble(streamOf(events, finish));
        const body = JSON.parse(openAiChat.writeTurn(turnOf(events, finish), options).body);
        const { message, finish_reason: wholeFinish } = body.choices[0];
        expect(stream.content).toBe(message.content ?? "");
        expect(stream.reasoning).toBe(message.reasoning_content ?? "");
        expect(stream.calls).toEqual(
          (message.tool_calls ?? []).map(
            (call: { id: string; function: { name: string; arguments: string } }) => ({
              id: call.id,
              name: call.function.name,
              arguments: call.function.arguments,
            }),
          ),
        );
        expect(stream.finish).toBe(wholeFinish);
        expect(stream.usage).toEqual(body.usage);
        expect(stream.done).toBe(true);
      }),
    );
  });

  test("an answer that comes back in the history is the turn that was sent", () => {
    fc.assert(
      fc.property(fc.array(eventArbitrary, { maxLength: 6 }), (events) => {
        const turn = turnOf(events, "stop");
        const { message } = JSON.parse(openAiChat.writeTurn(turn, options).body).choices[0];
        const [returned] = parse({ model: "m", messages: [message] }).conversation.messages;
        expect(returned?.parts).toEqual([
          ...(turn.reasoning === "" ? [] : [{ type: "reasoning", text: turn.reasoning }]),
          ...(turn.text === "" ? [] : [{ type: "text", text: turn.text }]),
          ...turn.toolCalls,
        ]);
      }),
    );
  });

  test("the stream has the shape that harnesses need", () => {
    const call: ToolCallPart = {
      type: "tool-call",
      toolCallId: "c1",
      name: "bash",
      argumentsText: '{"a": 1.0}',
    };
    const stream = streamOf(
      [
        { type: "text-delta", text: "Hi" },
        { type: "tool-call", call },
      ],
      "stop",
    );
    const chunks = stream
      .split("\n\n")
      .filter((block) => block.startsWith("data: {"))
      .map((block) => JSON.parse(block.slice(6)));
    expect(chunks[0].choices[0].delta).toEqual({ role: "assistant", content: "" });
    expect(chunks[2].choices[0].delta.tool_calls).toEqual([
      { index: 0, id: "c1", type: "function", function: { name: "bash", arguments: "" } },
    ]);
    expect(chunks[3].choices[0].delta.tool_calls).toEqual([
      { index: 0, function: { arguments: '{"a": 1.0}' } },
    ]);
    expect(chunks[4].choices[0].finish_reason).toBe("tool_calls");
    expect(chunks[5]).toMatchObject({
      choices: [],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 2,
        total_tokens: 5,
        prompt_tokens_details: { cached_tokens: 1 },
      },
    });
    expect(stream.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(stream).toContain(": keep-alive\n\n");
  });

  test("without include_usage no chunk speaks of usage", () => {
    const writer = openAiChat.createStreamWriter({ ...options, includeUsage: false });
    expect(writer.start() + writer.end("stop", usage)).not.toContain("usage");
  });

  test("an incomplete answer never ends cleanly", () => {
    for (const reason of ["aborted", "error"] as const) {
      const end = openAiChat.createStreamWriter(options).end(reason, usage);
      expect(JSON.parse(end.slice(6)).error.type).toBe("server_error");
      expect(end).not.toContain("[DONE]");
      expect(openAiChat.writeTurn(turnOf([], reason), options).status).toBe(502);
    }
  });
});

describe("errors and models", () => {
  test("context overflow has the vendor's code and words", () => {
    const message = "prompt is too long: 5000 tokens > 4096 maximum.";
    const response = openAiChat.writeError({
      status: 400,
      code: "context-length-exceeded",
      message,
    });
    expect(response.status).toBe(400);
    expect(JSON.parse(response.body).error).toEqual({
      message:
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 5000 tokens. Please reduce the length of the messages.",
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded",
    });
  });

  test("retry advice travels in headers", () => {
    const later = openAiChat.writeError({
      status: 503,
      code: "unavailable",
      message: "m",
      retryAfterSeconds: 1.2,
    });
    expect(later.headers["retry-after"]).toBe("2");
    expect(JSON.parse(later.body).error).toMatchObject({
      type: "server_error",
      code: "unavailable",
    });
    const final = openAiChat.writeError({
      status: 400,
      code: "request-field-refused",
      message: "m",
      param: "n",
      final: true,
    });
    expect(final.headers["x-should-retry"]).toBe("false");
    expect(JSON.parse(final.body).error).toMatchObject({
      type: "invalid_request_error",
      param: "n",
      code: "request_field_refused",
    });
  });

  test("an unknown key is the API's own invalid_api_key", () => {
    const response = openAiChat.writeError({ status: 401, code: "session-unknown", message: "m" });
    expect(JSON.parse(response.body).error.code).toBe("invalid_api_key");
  });

  test("models are listed", () => {
    expect(JSON.parse(openAiChat.writeModels(["a", "b"]).body)).toEqual({
      object: "list",
      data: [
        { id: "a", object: "model", created: 0, owned_by: "gimbal" },
        { id: "b", object: "model", created: 0, owned_by: "gimbal" },
      ],
    });
  });
});
