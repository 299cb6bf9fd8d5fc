/** How long a conversation is before anything is rendered or tokenised. */
import type { Conversation } from "@gimbal-rl/core";

/** UTF-16 code units of all tool definitions, texts and arguments: enough to refuse what cannot fit. */
export function countCharacters({ messages, tools }: Conversation): number {
  let total = 0;
  for (const tool of tools) total += tool.definitionText.length;
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.type === "text" || part.type === "reasoning") total += part.text.length;
      else if (part.type === "tool-call") total += part.argumentsText.length;
    }
  }
  return total;
}
