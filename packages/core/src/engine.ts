/**
 * The Engine port: ids in, ids out, with the log-probability of each sampled id.
 */
import type { PolicyVersion, SessionId } from "./ids.js";

/** How a call is captured (design.md section 4). */
export type CaptureMode = "tokens" | "chat" | "relay";

/** What an engine is and can do; the result of its capability probe. */
export interface EngineInfo {
  readonly id: string;
  readonly model: string;
  readonly captureMode: CaptureMode;
  /** Positions the model can attend to, prompt and completion together. */
  readonly contextLength: number;
  readonly vocabularySize: number;
  /** Whether log-probabilities are those of the distribution sampled from (after temperature). */
  readonly logprobsAfterTemperature: boolean;
}

/** The sampling distribution of one call. */
export interface SamplingParameters {
  /** Divides the logits; 0 means greedy. */
  readonly temperature: number;
  /** Nucleus mass in (0, 1]; 1 turns it off. */
  readonly topP: number;
  /** Number of candidates kept; 0 turns it off. */
  readonly topK: number;
}

/** One generation. */
export interface GenerateRequest {
  readonly promptIds: readonly number[];
  readonly maxTokens: number;
  readonly sampling: SamplingParameters;
  /** Ids that end the turn. The id that stopped it is part of the sampled ids. */
  readonly stopIds: readonly number[];
  /** Seed of this call alone, a 32-bit unsigned integer. */
  readonly seed: number;
  /** For sticky routing and fairness only. */
  readonly sessionId?: SessionId;
}

/** A run of sampled tokens under one policy version. `ids` and `logprobs` have equal length. */
export interface TokensEvent {
  readonly type: "tokens-delta";
  readonly ids: readonly number[];
  /** Natural-log probability of each id under the distribution it was sampled from, f32 values. */
  readonly logprobs: readonly number[];
  readonly policyVersion: PolicyVersion;
}

/** The last event of a generation. */
export interface GenerateEndEvent {
  readonly type: "generate-end";
  readonly reason: "stop" | "length" | "aborted";
  readonly cachedTokens: number;
}

/** Events of one generation, in order; exactly one `generate-end`, last. */
export type GenerateEvent = TokensEvent | GenerateEndEvent;

/** Something that samples tokens. */
export interface Engine {
  readonly info: EngineInfo;
  /** The version that the next sampled token will carry. */
  policyVersion(): PolicyVersion;
  /**
   * Samples one completion. Leaving the loop or aborting the signal stops it.
   * @throws {GimbalError} `context-length-exceeded`, `engine-failed`, `unavailable`, `invalid-request`.
   */
  generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<GenerateEvent>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An engine whose weights can be replaced without a restart. */
export interface TrainableEngine extends Engine {
  /** Replaces the weights by those of a Hugging Face model folder. Calls in flight are finished first. */
  loadWeights(modelDir: string, policyVersion: PolicyVersion): Promise<void>;
}
