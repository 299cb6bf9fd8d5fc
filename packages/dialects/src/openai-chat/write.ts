/**
 * Answers in the Chat Completions shape: stream, whole, errors, model list.
 *
 * Law: a stream, put together by the rules of the API, equals the whole answer of the same turn.
 */
import type { FinishReason, TurnEvent, Usage } from "@gimbal-rl/core";
import type {
  CompleteTurn,
  DialectError,
  DialectResponse,
  StreamWriter,
  WriterOptions,
} from "../dialect.js";
import { errorBody, writeChatError } from "./write-error.js";
import { writeOpenAiUsage } from "./write-usage.js";

const streamHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  // Tells a reverse proxy in front (nginx) not to collect the stream.
  "x-accel-buffering": "no",
};

/** An answer with calls says `tool_calls`, because harnesses act on it; a cut answer says `length`. */
function wireFinish(reason: "stop" | "length" | "tool-calls", calls: number): string {
  if (reason === "length") return "length";
  return calls > 0 ? "tool_calls" : "stop";
}

const incomplete: DialectError = {
  status: 502,
  code: "engine-failed",
  message: "The answer ended before it was complete. Send the request again.",
};

/** Creates the writer of one stream. */
export function createChatStreamWriter(options: WriterOptions): StreamWriter {
  let calls = 0;
  const send = (choices: unknown[], usage: unknown = null): string => {
    const chunk = {
      id: options.responseId,
      object: "chat.completion.chunk",
      created: options.createdAt,
      model: options.model,
      choices,
      ...(options.includeUsage ? { usage } : {}),
    };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  };
  const delta = (fields: unknown, finish: string | null = null): string =>
    send([{ index: 0, delta: fields, logprobs: null, finish_reason: finish }]);
  const error = (problem: DialectError): string =>
    `data: ${JSON.stringify(errorBody(problem))}\n\n`;

  return {
    headers: streamHeaders,
    start: () => delta({ role: "assistant", content: "" }),
    event(event: TurnEvent) {
      switch (event.type) {
        case "text-delta":
          return delta({ content: event.text });
        case "reasoning-delta":
          return delta({ reasoning_content: event.text });
        case "tool-call": {
          const { toolCallId, name, argumentsText } = event.call;
          const index = calls;
          calls += 1;
          const opening = {
            index,
            id: toolCallId,
            type: "function",
            function: { name, arguments: "" },
          };
          const rest = { index, function: { arguments: argumentsText } };
          return delta({ tool_calls: [opening] }) + delta({ tool_calls: [rest] });
        }
        default:
          return event satisfies never;
      }
    },
    end(finishReason: FinishReason, usage: Usage) {
      // A clean end is taken as success by every client, so an incomplete answer must not have one.
      if (finishReason === "aborted" || finishReason === "error") return error(incomplete);
      const finish = delta({}, wireFinish(finishReason, calls));
      const counts = options.includeUsage ? send([], writeOpenAiUsage(usage)) : "";
      return `${finish}${counts}data: [DONE]\n\n`;
    },
    heartbeat: () => ": keep-alive\n\n",
    error,
  };
}

/** The whole answer as one JSON body. */
export function writeChatTurn(turn: CompleteTurn, options: WriterOptions): DialectResponse {
  if (turn.finishReason === "aborted" || turn.finishReason === "error") {
    return writeChatError(incomplete);
  }
  const calls = turn.toolCalls.map((call) => ({
    id: call.toolCallId,
    type: "function",
    function: { name: call.name, arguments: call.argumentsText },
  }));
  const message = {
    role: "assistant",
    content: turn.text === "" && calls.length > 0 ? null : turn.text,
    ...(turn.reasoning === "" ? {} : { reasoning_content: turn.reasoning }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    refusal: null,
  };
  const body = {
    id: options.responseId,
    object: "chat.completion",
    created: options.createdAt,
    model: options.model,
    choices: [
      {
        index: 0,
        message,
        logprobs: null,
        finish_reason: wireFinish(turn.finishReason, calls.length),
      },
    ],
    usage: writeOpenAiUsage(turn.usage),
  };
  return jsonResponse(200, body);
}

/** The list of models. */
export function writeChatModels(models: readonly string[]): DialectResponse {
  const data = models.map((id) => ({ id, object: "model", created: 0, owned_by: "gimbal" }));
  return jsonResponse(200, { object: "list", data });
}

function jsonResponse(status: number, body: unknown): DialectResponse {
  return {
    status,
    headers: { "content-type": "application/json; charset=utf-8" },
    body: JSON.stringify(body),
  };
}
