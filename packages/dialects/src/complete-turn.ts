/** From a parsed message to the whole answer that a dialect writes. */
import type { AssistantMessage, FinishReason, Usage } from "@gimbal-rl/core";
import type { CompleteTurn } from "./dialect.js";

/** The turn of a message: its text, its reasoning and its calls, each in order. */
export function createCompleteTurn(
  { parts }: AssistantMessage,
  finishReason: FinishReason,
  usage: Usage,
): CompleteTurn {
  const textOf = (type: "text" | "reasoning"): string =>
    parts.map((part) => (part.type === type ? part.text : "")).join("");
  return {
    text: textOf("text"),
    reasoning: textOf("reasoning"),
    toolCalls: parts.filter((part) => part.type === "tool-call"),
    finishReason,
    usage,
  };
}
