/**
 * `POST /v1/completions`: text or token ids in, text and token ids out, nothing rendered or parsed.
 */
import { randomBytes } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { AskedSampling, GenerateRequest } from "@gimbal-rl/core";
import { openAiChat, writeOpenAiUsage } from "@gimbal-rl/dialects";
import { createEventStream, sampleAnswer } from "./inference-answer.js";
import { toInferenceError } from "./inference-error.js";
import {
  type AnswerExtras,
  assertMayFit,
  booleanField,
  type Fields,
  type InferenceContext,
  invalidField,
  numberField,
  parseFields,
  planGeneration,
  refusedField,
  tokenIdsField,
} from "./inference-request.js";

/** What the API samples when the request does not say. */
const apiDefaultMaxTokens = 16;

interface CompletionCall {
  readonly context: InferenceContext;
  readonly generation: GenerateRequest;
  readonly extras: AnswerExtras;
  readonly includeUsage: boolean;
  readonly head: { readonly id: string; readonly created: number };
}

/** Answers one completion request. @throws {GimbalError} before anything was sent. */
export async function answerCompletion(
  context: InferenceContext,
  body: string,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const fields = parseFields(body);
  refuseFields(fields);
  const promptIds = readPrompt(context, fields.prompt);
  const streamOptions = fields.stream_options ?? {};
  if (typeof streamOptions !== "object") {
    throw invalidField("stream_options", streamOptions, "an object");
  }
  const call: CompletionCall = {
    context,
    generation: planGeneration(context, {
      promptIds,
      sampling: readSampling(fields),
      stop: readStop(fields.stop),
      fields,
      defaultMaxTokens: apiDefaultMaxTokens,
    }),
    extras: {
      tokenIds: booleanField(fields, "return_token_ids"),
      logprobs: readLogprobs(fields.logprobs),
    },
    includeUsage: booleanField(streamOptions as Fields, "include_usage"),
    head: {
      id: `cmpl-${randomBytes(12).toString("hex")}`,
      created: Math.floor(context.nowMs() / 1000),
    },
  };
  if (booleanField(fields, "stream")) await streamCompletion(call, response, signal);
  else await sendCompletion(call, response, signal);
}

function refuseFields(fields: Fields): void {
  for (const name of ["n", "best_of"]) {
    if ((numberField(fields, name, { min: 1, max: 128, integer: true }) ?? 1) > 1) {
      throw refusedField(name, "one answer is given. Send several requests instead.");
    }
  }
  if (booleanField(fields, "echo")) {
    throw refusedField("echo", "the prompt is not scored. Send return_token_ids to get its ids.");
  }
  if ((fields.suffix ?? "") !== "") throw refusedField("suffix", "insertion is not served.");
  const bias = fields.logit_bias ?? {};
  if (typeof bias !== "object" || Object.keys(bias).length > 0) {
    throw refusedField("logit_bias", "log-probabilities would not be the policy's own.");
  }
}

/** A string, ids, or an array with one of them. */
function readPrompt(context: InferenceContext, value: unknown): number[] {
  const only = Array.isArray(value) && value.length === 1 ? value[0] : value;
  const prompt = typeof only === "string" || Array.isArray(only) ? only : value;
  if (typeof prompt === "string") {
    assertMayFit(context, prompt.length);
    return nonEmpty(context.renderer.tokenizer.encode(prompt, { allowSpecial: true }));
  }
  if (Array.isArray(prompt) && prompt.some((item) => typeof item !== "number")) {
    if (prompt.every((item) => typeof item === "string" || Array.isArray(item))) {
      throw refusedField("prompt", "one prompt per request is served. Send several requests.");
    }
  }
  return nonEmpty(tokenIdsField(prompt, "prompt", context.engine.info.vocabularySize));
}

function nonEmpty(ids: number[]): number[] {
  if (ids.length === 0) throw invalidField("prompt", "", "text or token ids, at least one token");
  return ids;
}

function readSampling(fields: Fields): AskedSampling {
  const temperature = numberField(fields, "temperature", { min: 0, max: 100 });
  const topP = numberField(fields, "top_p", { min: 0, max: 1 });
  const whole = { max: Number.MAX_SAFE_INTEGER, integer: true };
  const topK = numberField(fields, "top_k", { ...whole, min: -1 });
  const maxTokens = numberField(fields, "max_tokens", { ...whole, min: 1 });
  const seed = numberField(fields, "seed", { ...whole, min: Number.MIN_SAFE_INTEGER });
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK: Math.max(topK, 0) }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(seed === undefined ? {} : { seed }),
  };
}

function readStop(value: unknown): string[] {
  const list = Array.isArray(value) ? value : value == null ? [] : [value];
  for (const item of list) {
    if (typeof item !== "string" || item === "") {
      throw invalidField("stop", item, "a non-empty string or an array of them");
    }
  }
  return list as string[];
}

/** The API takes a count of alternatives; only the sampled token's own is kept. */
function readLogprobs(value: unknown): boolean {
  if (value == null || value === false) return false;
  if (value === true || value === 0 || value === 1) return true;
  if (typeof value !== "number") throw invalidField("logprobs", value, "0, 1 or true");
  throw refusedField("logprobs", "only the sampled token's own is kept. Send logprobs: 1.");
}

/** The API's four parallel arrays, and the ids. */
function logprobsOf(
  { context }: CompletionCall,
  ids: readonly number[],
  logprobs: readonly number[],
  textStart: number,
): unknown {
  const tokens = ids.map((id) => context.renderer.tokenizer.decode([id]));
  let offset = textStart;
  const offsets = tokens.map((token) => {
    const start = offset;
    offset += token.length;
    return start;
  });
  return {
    tokens,
    token_ids: ids,
    token_logprobs: logprobs,
    top_logprobs: null,
    text_offset: offsets,
  };
}

/** Text of sampled ids as it becomes certain; ids that end the turn are not shown. */
function createTextReader(call: CompletionCall): {
  push(ids: readonly number[]): string;
  end(): string;
} {
  const hidden = new Set(call.generation.stopIds);
  const decoder = call.context.renderer.tokenizer.createIncrementalDecoder();
  return {
    push: (ids) => ids.map((id) => (hidden.has(id) ? "" : decoder.push(id))).join(""),
    end: () => decoder.end(),
  };
}

async function sendCompletion(
  call: CompletionCall,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { context, extras, generation, head } = call;
  const sampled = await sampleAnswer(context.engine, generation, signal);
  const reader = createTextReader(call);
  const body = {
    ...head,
    object: "text_completion",
    model: context.model,
    choices: [
      {
        index: 0,
        text: reader.push(sampled.ids) + reader.end(),
        logprobs: extras.logprobs ? logprobsOf(call, sampled.ids, sampled.logprobs, 0) : null,
        finish_reason: sampled.reason,
        ...(extras.tokenIds
          ? { token_ids: sampled.ids, prompt_token_ids: generation.promptIds }
          : {}),
      },
    ],
    usage: writeOpenAiUsage(sampled.usage),
    ...(extras.tokenIds ? { prompt_token_ids: generation.promptIds } : {}),
  };
  response.writeHead(200, { "content-type": "application/json; charset=utf-8" });
  response.end(JSON.stringify(body));
}

async function streamCompletion(
  call: CompletionCall,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { context, extras, generation, head } = call;
  const chunk = (
    choice: Record<string, unknown> | null,
    top: Record<string, unknown> = {},
  ): string => {
    const body = {
      ...head,
      object: "text_completion",
      model: context.model,
      choices:
        choice === null
          ? []
          : [{ index: 0, text: "", logprobs: null, finish_reason: null, ...choice }],
      ...(call.includeUsage ? { usage: null } : {}),
      ...top,
    };
    return `data: ${JSON.stringify(body)}\n\n`;
  };
  const promptIds = { prompt_token_ids: generation.promptIds };
  const opening = extras.tokenIds ? chunk({ ...promptIds, token_ids: [] }, promptIds) : "";
  const stream = createEventStream(response, opening, ": keep-alive\n\n");
  const reader = createTextReader(call);
  let textLength = 0;
  try {
    const sampled = await sampleAnswer(context.engine, generation, signal, (ids, logprobs) => {
      const text = reader.push(ids);
      const piece = chunk({
        text,
        ...(extras.logprobs ? { logprobs: logprobsOf(call, ids, logprobs, textLength) } : {}),
        ...(extras.tokenIds ? { token_ids: ids } : {}),
      });
      textLength += text.length;
      return stream.write(piece);
    });
    const last = chunk({ text: reader.end(), finish_reason: sampled.reason });
    const usage = call.includeUsage ? chunk(null, { usage: writeOpenAiUsage(sampled.usage) }) : "";
    await stream.write(`${last}${usage}data: [DONE]\n\n`);
    response.end();
  } catch (error) {
    if (!stream.isOpen) throw error;
    response.end(`data: ${openAiChat.writeError(toInferenceError(error)).body}\n\n`);
  } finally {
    stream.close();
  }
}
