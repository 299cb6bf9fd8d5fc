/**
 * Canonical keys of messages, for finding a conversation's branch.
 *
 * Law: two messages have the same exact key only if they would be rendered the same: every part that is not an assistant's
 * text or reasoning counts byte for byte. The text itself is the key; there are no hash collisions to think about.
 */
import type { AssistantMessage, Conversation, Message } from "@gimbal-rl/core";

/** Key of everything before the first message. */
export function toolsKey(tools: Conversation["tools"]): string {
  return JSON.stringify(tools.map((tool) => tool.definitionText));
}

/** Adjacent text parts are one text: a string equals one text block, and so do several. */
function joinedParts(message: Exclude<Message, AssistantMessage>): unknown[] {
  const parts: unknown[] = [];
  let text: string | null = null;
  for (const part of message.parts) {
    if (part.type === "text") {
      text = (text ?? "") + part.text;
      continue;
    }
    if (text !== null) parts.push(text);
    text = null;
    parts.push({ image: part.url });
  }
  if (text !== null) parts.push(text);
  return parts;
}

interface AssistantContent {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly (readonly [id: string, name: string, argumentsText: string])[];
}

/** Text, reasoning and calls of an assistant turn, each joined. */
function assistantContent(message: AssistantMessage): AssistantContent {
  let text = "";
  let reasoning = "";
  const calls: (readonly [string, string, string])[] = [];
  for (const part of message.parts) {
    if (part.type === "text") text += part.text;
    else if (part.type === "reasoning") reasoning += part.text;
    else calls.push([part.toolCallId, part.name, part.argumentsText]);
  }
  return { text, reasoning, calls };
}

/** Key of a message as it was given. Whitespace around assistant text and reasoning does not count. */
export function givenKey(message: Message): string {
  if (message.role === "assistant") {
    const { text, reasoning, calls } = assistantContent(message);
    return `a${JSON.stringify([text.trim(), reasoning.trim(), calls])}`;
  }
  const owner = message.role === "tool" ? message.toolCallId : "";
  return `${message.role[0]}${JSON.stringify([owner, joinedParts(message)])}`;
}

/** Key of a turn by its tool-call ids; null when it has none. */
export function callIdsKey(message: AssistantMessage): string | null {
  const { calls } = assistantContent(message);
  return calls.length === 0 ? null : `i${JSON.stringify(calls.map(([id]) => id))}`;
}

/** Key of a turn without calls whose reasoning the harness left out. */
export function textOnlyKey(message: AssistantMessage): string | null {
  const { text, reasoning, calls } = assistantContent(message);
  if (calls.length > 0 || reasoning === "") return null;
  return givenKey({ role: "assistant", parts: [{ type: "text", text }] });
}

/** Ids of the calls that differ from those sampled. */
export function rewrittenCalls(sampled: AssistantMessage, returned: AssistantMessage): string[] {
  const before = new Map(assistantContent(sampled).calls.map((call) => [call[0], call]));
  return assistantContent(returned)
    .calls.filter(([id, name, text]) => {
      const original = before.get(id);
      return original === undefined || original[1] !== name || original[2] !== text;
    })
    .map(([id]) => id);
}
