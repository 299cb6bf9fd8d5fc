/**
 * CapturedCall: one model call as it happened.
 *
 * Law: `sampledIds`, `logprobs` and `usage.completionTokens` agree in count, or the call says so in `issues` and is
 * never trained.
 */
import type { AssistantMessage, Conversation, FinishReason, Usage } from "./conversation.js";
import type { CaptureMode, SamplingParameters } from "./engine.js";
import type { AttemptId, BlobId, CallId, PolicyVersion, SessionId } from "./ids.js";

/** The wire protocols. */
export type DialectId =
  | "openai-chat"
  | "openai-responses"
  | "anthropic-messages"
  | "google-generate-content";

/** A run of sampled tokens that came from one set of weights. */
export interface PolicyRun {
  readonly policyVersion: PolicyVersion;
  /** Number of sampled ids in the run; the runs of a call sum to its sampled ids. */
  readonly tokens: number;
}

/** How the tape placed this call. */
export interface TapeLink {
  /** The call whose prompt and completion this prompt extends; null for a new root. */
  readonly parentCallId: CallId | null;
  /** Ids of the prompt that were already on the tape. */
  readonly reusedTokens: number;
  /** Tool-call ids whose arguments the harness changed; the tape kept the sampled ids. */
  readonly rewritten: readonly string[];
  /** Why a new root was made, when history existed; null otherwise. */
  readonly forkReason: string | null;
}

/** A volatile part of the prompt that was replaced before rendering. */
export interface VolatileReplacement {
  readonly rule: string;
  readonly original: string;
  readonly replacement: string;
}

/** Something about a call that graders and the trainer must know. */
export type CallIssue =
  | "aborted"
  | "count-mismatch"
  | "empty"
  | "engine-error"
  | "malformed-tool-call"
  | "missing-ids"
  | "missing-logprobs"
  | "truncated";

/** What the harness asked for; `undefined` = it did not say. */
export interface AskedSampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly maxTokens?: number;
  readonly seed?: number;
}

/** One captured model call. */
export interface CapturedCall {
  readonly callId: CallId;
  readonly sessionId: SessionId;
  readonly attemptId: AttemptId | null;
  /** Position in the session, by arrival, from 0. */
  readonly index: number;
  readonly dialect: DialectId;
  readonly captureMode: CaptureMode;
  /** Model name on the wire. */
  readonly model: string;
  readonly stream: boolean;
  /** Raw request and response bodies, verbatim. */
  readonly requestBlob: BlobId | null;
  readonly responseBlob: BlobId | null;
  readonly conversation: Conversation;
  /** The turn as parsed from the sampled ids; null when nothing was sampled. */
  readonly message: AssistantMessage | null;
  readonly promptIds: readonly number[];
  readonly sampledIds: readonly number[];
  /** Natural-log probabilities after temperature, one per sampled id, f32 values. */
  readonly logprobs: readonly number[];
  readonly policyRuns: readonly PolicyRun[];
  readonly samplingAsked: AskedSampling;
  readonly samplingApplied: SamplingParameters & { readonly maxTokens: number };
  readonly seed: number;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
  readonly tape: TapeLink;
  readonly volatile: readonly VolatileReplacement[];
  /** Names of request fields that were ignored. */
  readonly ignoredFields: readonly string[];
  readonly issues: readonly CallIssue[];
  /** The call this one is a retry of, when a retry mark said so. */
  readonly retryOf: CallId | null;
  /** Unix milliseconds. */
  readonly startedAtMs: number;
  readonly firstTokenAtMs: number | null;
  readonly endedAtMs: number;
}
