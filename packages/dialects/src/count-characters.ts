/** How long a conversation is before anything is rendered or tokenised. */
import type { Conversation } from "@gimbal-rl/core";

/**
 * What a message or a call adds besides its text: role, markers and quotes take at least two tokens of up to 16 characters in every chat
 * template, so that a flood of empty ones counts too.
 */
const charactersOfFrame = 32;

/** UTF-16 code units of all tool definitions, texts, names and arguments: enough to refuse what cannot fit. */
export function countCharacters({ messages, tools }: Conversation): number {
  let total = 0;
  for (const tool of tools) total += tool.definitionText.length;
  for (const message of messages) {
    total += charactersOfFrame;
    for (const part of message.parts) {
      if (part.type === "text" || part.type === "reasoning") total += part.text.length;
      else if (part.type === "tool-call") {
        total += charactersOfFrame + part.name.length + part.argumentsText.length;
      }
    }
  }
  return total;
}
