/**
 * The Dialect contract: one wire protocol, both directions. Pure; the server is generic over dialects.
 */
import type {
  AskedSampling,
  Conversation,
  DialectId,
  FinishReason,
  ToolCallPart,
  TurnEvent,
  Usage,
} from "@gimbal-rl/core";

/** What a path means to a dialect. */
export type DialectRoute =
  | { readonly kind: "generate" }
  | { readonly kind: "models" }
  | { readonly kind: "count-tokens" };

/** A request, translated once. */
export interface ParsedRequest {
  readonly model: string;
  readonly conversation: Conversation;
  readonly stream: boolean;
  /** Whether the caller wants usage in a stream. */
  readonly includeUsage: boolean;
  readonly toolChoice: "auto" | "none" | "required" | { readonly name: string };
  readonly sampling: AskedSampling;
  readonly stop: readonly string[];
  /** Names of fields that are recorded but change nothing. */
  readonly ignoredFields: readonly string[];
}

/** An error to send in the dialect's own shape. */
export interface DialectError {
  readonly status: number;
  /** Our code, for logs and for the dialect to choose its own words. */
  readonly code: string;
  readonly message: string;
  readonly retryAfterSeconds?: number;
  /** The request field the error is about, when it is about one. */
  readonly param?: string;
  /** Tell the client's SDK not to try again (`x-should-retry: false`). */
  readonly final?: boolean;
}

/** A complete HTTP answer. */
export interface DialectResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a writer needs to know about the call. */
export interface WriterOptions {
  readonly responseId: string;
  readonly model: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly promptTokens: number;
  readonly includeUsage: boolean;
}

/** Writes one answer as stream text. Each method returns the text to send, possibly empty. */
export interface StreamWriter {
  readonly headers: Readonly<Record<string, string>>;
  start(): string;
  event(event: TurnEvent): string;
  end(finishReason: FinishReason, usage: Usage): string;
  /** Keeps the connection alive; valid at any point between events. */
  heartbeat(): string;
  /** Ends a stream that already began, in the protocol's own error event. */
  error(error: DialectError): string;
}

/** A whole answer, for callers that do not stream. */
export interface CompleteTurn {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCallPart[];
  readonly finishReason: FinishReason;
  readonly usage: Usage;
}

/** One wire protocol. */
export interface Dialect {
  readonly id: DialectId;
  /** Recognises a path (any prefix, query ignored by the caller); null when it is not this dialect's. */
  route(method: string, path: string): DialectRoute | null;
  /**
   * Translates a request body.
   * @throws {GimbalError} `invalid-request` or `request-field-refused`, naming the field.
   */
  parseRequest(body: string): ParsedRequest;
  createStreamWriter(options: WriterOptions): StreamWriter;
  writeTurn(turn: CompleteTurn, options: WriterOptions): DialectResponse;
  writeError(error: DialectError): DialectResponse;
  writeModels(models: readonly string[]): DialectResponse;
}
