/**
 * The canonical conversation: what every dialect is translated to and from.
 *
 * Law: nothing a harness sends back later is lost. Argument and schema JSON stays the text that was sent or
 * sampled; it is never parsed and re-serialised.
 */

/** Plain text. */
export interface TextPart {
  readonly type: "text";
  readonly text: string;
}

/** The model's reasoning. `signature` is opaque and returned verbatim. */
export interface ReasoningPart {
  readonly type: "reasoning";
  readonly text: string;
  readonly signature?: string;
}

/** An image by URL or data URL; refused by engines that take text only. */
export interface ImagePart {
  readonly type: "image";
  readonly url: string;
}

/** One tool call. `argumentsText` is the JSON text exactly as sampled or received. */
export interface ToolCallPart {
  readonly type: "tool-call";
  /** The id that travels to the harness and back. Minted by the gateway for sampled calls. */
  readonly toolCallId: string;
  readonly name: string;
  readonly argumentsText: string;
}

/** System or developer text. */
export interface SystemMessage {
  readonly role: "system";
  readonly parts: readonly TextPart[];
  /** The role word on the wire, when it was not `system`. */
  readonly wireRole?: string;
}

/** What the user, or the harness in the user's name, says. */
export interface UserMessage {
  readonly role: "user";
  readonly parts: readonly (TextPart | ImagePart)[];
}

/** One assistant turn, parts in the order they were produced. */
export interface AssistantMessage {
  readonly role: "assistant";
  readonly parts: readonly (TextPart | ReasoningPart | ToolCallPart)[];
}

/** The result of one tool call. */
export interface ToolMessage {
  readonly role: "tool";
  readonly toolCallId: string;
  readonly parts: readonly (TextPart | ImagePart)[];
}

/** Any message. */
export type Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage;

/** A tool the harness offers. */
export interface ToolDefinition {
  readonly name: string;
  readonly description?: string;
  /** The JSON Schema of the arguments, as the raw JSON text of the request body. */
  readonly schemaText: string;
  /** The whole tool entry in OpenAI function form (`{"type":"function","function":{...}}`) as raw JSON text,
   * key order kept: what chat templates print. */
  readonly definitionText: string;
}

/** Messages and the tools they may use. */
export interface Conversation {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
}

/** A piece of an assistant turn while it streams. A tool call comes once, complete and valid. */
export type TurnEvent =
  | { readonly type: "text-delta"; readonly text: string }
  | { readonly type: "reasoning-delta"; readonly text: string }
  | { readonly type: "tool-call"; readonly call: ToolCallPart };

/** Why sampling stopped. */
export type FinishReason = "stop" | "length" | "tool-calls" | "aborted" | "error";

/** Token counts of one call, as reported to the harness. They equal the lengths of the id arrays. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Prompt tokens whose keys and values were reused. */
  readonly cachedTokens: number;
}
