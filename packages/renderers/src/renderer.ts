/**
 * Contracts of this package: tokenizer, renderer, output parser and tape.
 *
 * Law: ids come from the engine or from one rendering; text is a label on them. Nothing sampled is ever re-tokenised.
 */
import type {
  AssistantMessage,
  CallId,
  Conversation,
  FinishReason,
  TurnEvent,
} from "@gimbal-rl/core";

/** Text to ids and back. */
export interface Tokenizer {
  readonly vocabularySize: number;
  /** Encodes text; special-token strings inside it become their ids only when `allowSpecial`. */
  encode(text: string, options?: { readonly allowSpecial?: boolean }): number[];
  /** Decodes to text, special tokens included. */
  decode(ids: readonly number[]): string;
  /** The id of a special or ordinary token string, or undefined. */
  tokenToId(token: string): number | undefined;
  /** A decoder that emits text as soon as it is certain (never half a UTF-8 character). */
  createIncrementalDecoder(): { push(id: number): string; end(): string };
}

/** Which message and part a run of prompt ids came from; spans cover the ids in order. */
export interface RenderSpan {
  readonly start: number;
  readonly end: number;
  /** Index of the message; -1 for the template's own preamble or the generation prompt. */
  readonly messageIndex: number;
  readonly part: "tools" | "content" | "generation-prompt" | "template";
}

/** A rendered prompt. */
export interface RenderedPrompt {
  readonly ids: readonly number[];
  readonly spans: readonly RenderSpan[];
}

/** What an output parser found in a finished turn. */
export interface ParsedTurn {
  readonly message: AssistantMessage;
  /** True when something looked like a tool call and was not one; its raw text is in the message as text. */
  readonly malformed: boolean;
  readonly toolCalls: number;
}

/** Parses one turn from sampled ids, incrementally. The same ids in any split give the same events and turn. */
export interface OutputParser {
  /** Feeds ids; returns the events that became certain. Stop ids are not shown as text. */
  push(ids: readonly number[]): TurnEvent[];
  /** Ends the turn; returns the remaining events and the parsed turn. */
  end(finishReason: FinishReason): { readonly events: TurnEvent[]; readonly turn: ParsedTurn };
}

/** Whether a template can be continued without rendering the whole conversation again. */
export interface DeltaSupport {
  readonly supported: boolean;
  /** Why not; null when supported. */
  readonly reason: string | null;
  /** Whether rendering a whole conversation keeps earlier turns as they were sampled (no dropped reasoning, no empty
   * think block that appears or vanishes). When false, the tape still goes on; the `template` policy would fork. */
  readonly keepsHistory: boolean;
}

/** One model family's way to write conversations as ids. */
export interface Renderer {
  readonly id: string;
  readonly tokenizer: Tokenizer;
  /** Ids that end a turn; from the tokenizer and template, never from samples. */
  readonly stopIds: readonly number[];
  readonly deltaSupport: DeltaSupport;
  /** sha256 hex of the chat template and of tokenizer.json, for run.json. */
  readonly fingerprint: { readonly template: string; readonly tokenizer: string };
  /** Renders a whole conversation with a generation prompt.
   * @throws {GimbalError} `template-unsupported`, `invalid-request`. */
  render(conversation: Conversation): RenderedPrompt;
  /**
   * Ids that follow a tape that ends in a sampled turn: the end of turn if the sample lacks it, the new messages,
   * and the generation prompt. Work grows with what is new.
   * @param tail - the last ids on the tape (at least the sampled turn).
   * @param newMessages - messages after the sampled assistant turn.
   */
  renderDelta(tail: readonly number[], newMessages: Conversation["messages"]): readonly number[];
  createOutputParser(options: {
    readonly conversation: Conversation;
    /** Called once per complete tool call. */
    readonly mintToolCallId: () => string;
  }): OutputParser;
}

/** Where a new call goes on the tape. */
export interface TapePlan {
  readonly promptIds: readonly number[];
  readonly parentCallId: CallId | null;
  readonly reusedTokens: number;
  readonly rewritten: readonly string[];
  readonly forkReason: string | null;
}

/** The ids of one session: a forest of what was sent to and sampled from the engine. */
export interface Tape {
  /** Finds the branch whose history is a prefix of the conversation and extends it, or makes a root. */
  plan(conversation: Conversation): TapePlan;
  /** Adds a finished call, so that later calls can extend it. Call it also for cut and aborted turns that were
   * delivered to the harness. */
  commit(entry: {
    readonly callId: CallId;
    readonly conversation: Conversation;
    readonly plan: TapePlan;
    readonly sampledIds: readonly number[];
    readonly message: AssistantMessage;
  }): void;
}
