/**
 * One call inside the sampler: its request, what it has sampled, and where it stands in the trie.
 */
import {
  createRandom,
  type GenerateRequest,
  GimbalError,
  type PolicyVersion,
  type Random,
} from "@gimbal-rl/core";
import type { Cursor } from "./segment-trie.js";

/** Where the results of one call go. Exactly one of `end` and `fail` comes, last. */
export interface CallSink {
  token(id: number, logprob: number, policyVersion: PolicyVersion): void;
  end(reason: "stop" | "length" | "aborted", cachedTokens: number): void;
  fail(error: GimbalError): void;
}

/** A call that waits or runs. */
export interface Sequence {
  readonly arrival: number;
  readonly sessionId: string;
  readonly request: GenerateRequest;
  readonly stopIds: ReadonlySet<number>;
  readonly random: Random;
  readonly sink: CallSink;
  /** Most tokens it may sample: what was asked, cut to the context. */
  readonly maxTokens: number;
  /** Prompt and sampled ids that are to be run through the model; all but the last sampled id. */
  readonly ids: number[];
  sampled: number;
  /** Rows of the prompt computed for this call alone. */
  computedRows: number;
  cachedTokens: number;
  /** Present while it runs. */
  cursor: Cursor | null;
}

/** Limits that a request is checked against. */
export interface SequenceLimits {
  readonly contextLength: number;
  readonly vocabularySize: number;
}

/**
 * Checks a request and makes a waiting sequence of it.
 * @throws {GimbalError} `invalid-request`, `context-length-exceeded`.
 */
export function createSequence(
  request: GenerateRequest,
  limits: SequenceLimits,
  arrival: number,
  sink: CallSink,
): Sequence {
  checkRequest(request, limits);
  const room = limits.contextLength - request.promptIds.length;
  return {
    arrival,
    sessionId: request.sessionId ?? `call-${arrival}`,
    request,
    stopIds: new Set(request.stopIds),
    random: createRandom(request.seed),
    sink,
    maxTokens: Math.min(request.maxTokens, room),
    ids: [...request.promptIds],
    sampled: 0,
    computedRows: 0,
    cachedTokens: 0,
    cursor: null,
  };
}

/**
 * Checks what can be checked without the model's weights.
 * @throws {GimbalError} `invalid-request`, `context-length-exceeded`.
 */
export function checkRequest(request: GenerateRequest, limits: SequenceLimits): void {
  const { promptIds, maxTokens, sampling, seed } = request;
  const { temperature, topP, topK } = sampling;
  if (promptIds.length === 0) throw invalid("promptIds is empty, expected at least one id");
  for (const id of promptIds) {
    if (!Number.isInteger(id) || id < 0 || id >= limits.vocabularySize) {
      throw invalid(
        `promptIds holds ${id}, expected ids from 0 to ${limits.vocabularySize - 1}. Use the tokenizer of this model`,
      );
    }
  }
  if (!Number.isInteger(maxTokens) || maxTokens < 1) {
    throw invalid(`maxTokens is ${maxTokens}, expected a whole number of at least 1`);
  }
  if (!(temperature >= 0 && Number.isFinite(temperature))) {
    throw invalid(`temperature is ${temperature}, expected 0 (greedy) or a positive number`);
  }
  if (!(topP > 0 && topP <= 1)) throw invalid(`topP is ${topP}, expected above 0 and at most 1`);
  if (!Number.isInteger(topK) || topK < 0) {
    throw invalid(`topK is ${topK}, expected 0 (off) or a positive whole number`);
  }
  if (!Number.isInteger(seed) || seed < 0 || seed > 0xffff_ffff) {
    throw invalid(`seed is ${seed}, expected a 32-bit unsigned integer`);
  }
  if (promptIds.length >= limits.contextLength) {
    throw new GimbalError(
      "context-length-exceeded",
      `The prompt has ${promptIds.length} tokens, the engine holds ${limits.contextLength} for prompt and completion together. Shorten the prompt or raise the engine's slots.`,
      { details: { promptTokens: promptIds.length, contextLength: limits.contextLength } },
    );
  }
}

function invalid(text: string): GimbalError {
  return new GimbalError("invalid-request", `${text}.`);
}
