/**
 * `POST /v1/chat/completions`: the `openai-chat` dialect over an engine, with the ids and log-probabilities that
 * training needs on request.
 *
 * Law: a stream, put together by the rules of the API, equals the whole answer of the same ids.
 */
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Conversation, GenerateRequest } from "@gimbal-rl/core";
import {
  countCharacters,
  createCompleteTurn,
  openAiChat,
  type ParsedRequest,
  type WriterOptions,
} from "@gimbal-rl/dialects";
import type { OutputParser } from "@gimbal-rl/renderers";
import {
  createEventStream,
  finishReasonOf,
  logprobEntries,
  type SampledAnswer,
  sampleAnswer,
} from "./inference-answer.js";
import { toInferenceError } from "./inference-error.js";
import {
  type AnswerExtras,
  assertMayFit,
  booleanField,
  type InferenceContext,
  numberField,
  parseFields,
  planGeneration,
  refusedField,
} from "./inference-request.js";

/** A chat call that may start. */
interface ChatCall {
  readonly context: InferenceContext;
  readonly request: ParsedRequest;
  readonly conversation: Conversation;
  readonly generation: GenerateRequest;
  readonly extras: AnswerExtras;
  readonly writerOptions: WriterOptions;
}

/** Answers one chat request. @throws {GimbalError} before anything was sent. */
export async function answerChat(
  context: InferenceContext,
  body: string,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const call = prepareChat(context, body);
  const parser = context.renderer.createOutputParser({
    conversation: call.conversation,
    mintToolCallId: () => `call_${randomBytes(12).toString("hex")}`,
  });
  if (call.request.stream) await streamChat(call, parser, response, signal);
  else await sendChat(call, parser, response, signal);
}

function prepareChat(context: InferenceContext, body: string): ChatCall {
  const request = openAiChat.parseRequest(body);
  const fields = parseFields(body);
  const { toolChoice } = request;
  if (toolChoice !== "auto" && toolChoice !== "none") {
    throw refusedField(
      "tool_choice",
      'a tool call cannot be forced on sampled tokens. Use "auto" or "none".',
    );
  }
  if ((numberField(fields, "top_logprobs", { min: 0, max: 20, integer: true }) ?? 0) > 0) {
    throw refusedField(
      "top_logprobs",
      "only the log-probability of the sampled token is kept. Send logprobs: true alone.",
    );
  }
  const conversation =
    toolChoice === "none" ? { ...request.conversation, tools: [] } : request.conversation;
  assertMayFit(context, countCharacters(conversation));
  const { ids: promptIds } = context.renderer.render(conversation);
  return {
    context,
    request,
    conversation,
    generation: planGeneration(context, {
      promptIds,
      sampling: request.sampling,
      stop: request.stop,
      fields,
      defaultMaxTokens: context.defaultMaxTokens,
    }),
    extras: {
      tokenIds: booleanField(fields, "return_token_ids"),
      logprobs: booleanField(fields, "logprobs"),
    },
    writerOptions: {
      responseId: `chatcmpl-${randomBytes(12).toString("hex")}`,
      model: context.model,
      createdAt: Math.floor(context.nowMs() / 1000),
      promptTokens: promptIds.length,
      includeUsage: request.includeUsage,
    },
  };
}

async function sendChat(
  call: ChatCall,
  parser: OutputParser,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { context, extras, generation } = call;
  const sampled = await sampleAnswer(context.engine, generation, signal, (ids) => {
    parser.push(ids);
  });
  const { turn } = parser.end(sampled.reason);
  const finishReason = finishReasonOf(sampled.reason, turn.toolCalls);
  const answer = openAiChat.writeTurn(
    createCompleteTurn(turn.message, finishReason, sampled.usage),
    call.writerOptions,
  );
  const body = JSON.parse(answer.body) as { choices: Record<string, unknown>[] };
  const choice = body.choices[0];
  if (choice !== undefined)
    Object.assign(choice, choiceExtras(call, sampled.ids, sampled.logprobs));
  if (extras.tokenIds) Object.assign(body, { prompt_token_ids: generation.promptIds });
  response.writeHead(answer.status, answer.headers).end(JSON.stringify(body));
}

/** What the caller asked for beside the turn, for a run of sampled ids. */
function choiceExtras(
  { context, extras }: ChatCall,
  ids: readonly number[],
  logprobs: readonly number[],
): Record<string, unknown> {
  const content = (): unknown => ({
    content: logprobEntries(context.renderer.tokenizer, ids, logprobs),
    refusal: null,
  });
  return {
    ...(extras.logprobs ? { logprobs: content() } : {}),
    ...(extras.tokenIds ? { token_ids: ids } : {}),
  };
}

async function streamChat(
  call: ChatCall,
  parser: OutputParser,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { context, extras, generation, writerOptions } = call;
  const writer = openAiChat.createStreamWriter(writerOptions);
  const hasExtras = extras.tokenIds || extras.logprobs;
  /** Ids and log-probabilities travel in chunks of their own: text can lag behind ids, a held tool call does. */
  const extraChunk = (
    choice: Record<string, unknown>,
    top: Record<string, unknown> = {},
  ): string => {
    const chunk = {
      id: writerOptions.responseId,
      object: "chat.completion.chunk",
      created: writerOptions.createdAt,
      model: writerOptions.model,
      choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: null, ...choice }],
      ...(writerOptions.includeUsage ? { usage: null } : {}),
      ...top,
    };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  };
  const opening =
    writer.start() +
    (extras.tokenIds ? extraChunk({}, { prompt_token_ids: generation.promptIds }) : "");
  const stream = createEventStream(response, opening, writer.heartbeat());
  try {
    const sampled: SampledAnswer = await sampleAnswer(
      context.engine,
      generation,
      signal,
      (ids, logprobs) => {
        const text = parser
          .push(ids)
          .map((event) => writer.event(event))
          .join("");
        const extra = hasExtras ? extraChunk(choiceExtras(call, ids, logprobs)) : "";
        return stream.write(text + extra);
      },
    );
    const { events, turn } = parser.end(sampled.reason);
    const text = events.map((event) => writer.event(event)).join("");
    const reason = finishReasonOf(sampled.reason, turn.toolCalls);
    await stream.write(text + writer.end(reason, sampled.usage));
    response.end();
  } catch (error) {
    if (!stream.isOpen) throw error;
    response.end(writer.error(toInferenceError(error)));
  } finally {
    stream.close();
  }
}
