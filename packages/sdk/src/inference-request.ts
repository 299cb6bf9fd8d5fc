/**
 * What the inference server reads from request bodies, and how a request becomes a generation.
 *
 * Law: a field is honoured, ignored, or refused by name; none is guessed. Sampling follows the request, else the API's
 * defaults (temperature 1, top_p 1).
 */
import { createHash } from "node:crypto";
import {
  type AskedSampling,
  type Engine,
  type GenerateRequest,
  GimbalError,
  hashToSeed,
  type SamplingParameters,
} from "@gimbal-rl/core";
import { applySampling } from "@gimbal-rl/dialects";
import type { Renderer } from "@gimbal-rl/renderers";

const apiDefaults: SamplingParameters = { temperature: 1, topP: 1, topK: 0 };

/** A parsed JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** What the handlers share. */
export interface InferenceContext {
  readonly engine: Engine;
  readonly renderer: Renderer;
  /** Name in answers. */
  readonly model: string;
  readonly defaultMaxTokens: number;
  readonly maxCharactersPerToken: number;
  /** Seed of a call that names none. */
  readonly nextSeed: (promptIds: readonly number[]) => number;
  /** Unix milliseconds. */
  readonly nowMs: () => number;
}

/** Extras of an answer, beyond the vendor's API. */
export interface AnswerExtras {
  /** `return_token_ids`: prompt ids on the answer, sampled ids on the choice. */
  readonly tokenIds: boolean;
  /** `logprobs`: the log-probability of each sampled token, after temperature. */
  readonly logprobs: boolean;
}

/** A 400 naming the field. */
export function invalidField(field: string, found: unknown, expected: string): GimbalError {
  const text = JSON.stringify(found) ?? "nothing";
  const shown = text.length <= 60 ? text : `${text.slice(0, 57)}...`;
  return new GimbalError("invalid-request", `${field}: found ${shown}, expected ${expected}.`, {
    details: { field },
  });
}

/** A refusal of something that would change what the answer means. */
export function refusedField(field: string, why: string): GimbalError {
  return new GimbalError("request-field-refused", `${field} is refused: ${why}`, {
    details: { field },
  });
}

/** @throws {GimbalError} `invalid-request` when the body is no JSON object. */
export function parseFields(body: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw new GimbalError("invalid-request", "The request body is not valid JSON.", {
      cause: error,
    });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw invalidField("body", value, "a JSON object");
  }
  return value as Fields;
}

/** A number in a range; undefined when absent or null. */
export function numberField(
  fields: Fields,
  name: string,
  range: { readonly min: number; readonly max: number; readonly integer?: boolean },
): number | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined) return undefined;
  const fits =
    typeof value === "number" &&
    value >= range.min &&
    value <= range.max &&
    (range.integer !== true || Number.isSafeInteger(value));
  if (!fits) {
    const kind = range.integer === true ? "a whole number" : "a number";
    throw invalidField(name, value, `${kind} from ${range.min} to ${range.max}`);
  }
  return value;
}

/** True or false; absent and null are false. */
export function booleanField(fields: Fields, name: string): boolean {
  const value = fields[name] ?? false;
  if (typeof value !== "boolean") throw invalidField(name, value, "true or false");
  return value;
}

/** Ids of the vocabulary. @throws {GimbalError} `invalid-request`. */
export function tokenIdsField(value: unknown, name: string, vocabularySize: number): number[] {
  if (!Array.isArray(value)) throw invalidField(name, value, "an array of token ids");
  const isId = (id: unknown): boolean =>
    Number.isSafeInteger(id) && (id as number) >= 0 && (id as number) < vocabularySize;
  const position = value.findIndex((id) => !isId(id));
  if (position >= 0) {
    const expected = `a token id from 0 to ${vocabularySize - 1}`;
    throw invalidField(`${name}[${position}]`, value[position], expected);
  }
  return value as number[];
}

/** A stop string works where it is one token; anything else would cut sampled tokens apart. */
function stopIdOf(text: string, renderer: Renderer): number {
  const id = renderer.tokenizer.tokenToId(text);
  if (id !== undefined) return id;
  throw refusedField(
    "stop",
    `${JSON.stringify(text)} is not one token of this model. Leave it out or send stop_token_ids; turns end by themselves.`,
  );
}

/** What a request wants sampled. */
export interface WantedGeneration {
  readonly promptIds: readonly number[];
  readonly sampling: AskedSampling;
  readonly stop: readonly string[];
  readonly fields: Fields;
  readonly defaultMaxTokens: number;
}

/**
 * Decides how a request is sampled; a completion longer than the context is clamped to what is left.
 * @throws {GimbalError} `context-length-exceeded`, `request-field-refused`, `invalid-request`.
 */
export function planGeneration(
  context: InferenceContext,
  { defaultMaxTokens, fields, promptIds, sampling, stop }: WantedGeneration,
): GenerateRequest {
  const { engine, nextSeed, renderer } = context;
  const { contextLength, vocabularySize } = engine.info;
  const contextLeft = contextLength - promptIds.length;
  if (contextLeft <= 0) throw contextOverflow(String(promptIds.length), contextLength);
  const stopTokenIds = fields.stop_token_ids ?? [];
  return {
    promptIds,
    maxTokens: Math.min(sampling.maxTokens ?? defaultMaxTokens, contextLeft),
    sampling: applySampling(sampling, apiDefaults),
    stopIds: [
      ...renderer.stopIds,
      ...stop.map((text) => stopIdOf(text, renderer)),
      ...tokenIdsField(stopTokenIds, "stop_token_ids", vocabularySize),
    ],
    seed: sampling.seed === undefined ? nextSeed(promptIds) : sampling.seed >>> 0,
  };
}

/** The vendor's own words are made from this message by the dialect. */
function contextOverflow(tokens: string, limit: number): GimbalError {
  return new GimbalError(
    "context-length-exceeded",
    `prompt is too long: ${tokens} tokens > ${limit} maximum. Shorten the prompt.`,
  );
}

/** Refuses text that cannot fit before it is tokenised, because tokenising megabytes would stall everyone. */
export function assertMayFit(context: InferenceContext, characters: number): void {
  const { contextLength } = context.engine.info;
  if (characters <= contextLength * context.maxCharactersPerToken) return;
  const tokens = Math.ceil(characters / context.maxCharactersPerToken);
  throw contextOverflow(`at least ${tokens}`, contextLength);
}

/** Occurrence counts kept for prompts; beyond it the oldest is forgotten and its next repeat starts again. */
const rememberedPrompts = 4096;

/** Seeds for calls without one: a hash of server seed, prompt and how often it came, never of arrival order. */
export function createSeedSource(serverSeed: number): (promptIds: readonly number[]) => number {
  const occurrences = new Map<string, number>();
  return (promptIds) => {
    const digest = createHash("sha256").update(Int32Array.from(promptIds)).digest("base64url");
    const occurrence = occurrences.get(digest) ?? 0;
    occurrences.delete(digest);
    occurrences.set(digest, occurrence + 1);
    if (occurrences.size > rememberedPrompts) {
      for (const oldest of occurrences.keys()) {
        occurrences.delete(oldest);
        break;
      }
    }
    return hashToSeed("inference", serverSeed, digest, occurrence);
  };
}
