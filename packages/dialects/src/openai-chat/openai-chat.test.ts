import type { ToolCallPart, TurnEvent, Usage } from "@gimbal-rl/core";
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
function parse(body: unknown): ReturnType<typeof openAiChat.parseRequest> {
  return openAiChat.parseRequest(typeof body === "string" ? body : JSON.stringify(body));
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
