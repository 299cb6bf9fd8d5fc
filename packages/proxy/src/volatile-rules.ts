/**
 * Prompt parts that differ between otherwise equal calls (per-request hashes, dates, temporary paths), replaced by fixed
 * placeholders before rendering.
 *
 * Law: the raw body keeps the original; every replacement is listed on the call; assistant turns are never touched.
 */
import type {
  Conversation,
  ImagePart,
  Message,
  TextPart,
  VolatileReplacement,
} from "@gimbal-rl/core";

/** One rule. The expression must be global and must not match the empty string. */
export interface VolatileRule {
  readonly id: string;
  readonly pattern: RegExp;
  readonly replacement: string;
  /** Roles it applies to. Default: system and user. */
  readonly roles?: readonly ("system" | "user" | "tool")[];
}

/** Rules that every gateway may use: parts that real harnesses are known to vary per request. */
export const defaultVolatileRules: readonly VolatileRule[] = [
  {
    // Claude Code's first system block: a billing line with a per-request hash.
    id: "anthropic-billing-header",
    pattern: /^x-anthropic-billing-header:[^\n]*/gm,
    replacement: "x-anthropic-billing-header: -",
    roles: ["system"],
  },
];

/** A conversation with its volatile parts replaced, and what was replaced. */
export interface Stabilised {
  readonly conversation: Conversation;
  readonly replacements: readonly VolatileReplacement[];
}

/** Applies the rules in order. Without a match the same conversation object comes back. */
export function stabiliseConversation(
  conversation: Conversation,
  rules: readonly VolatileRule[],
): Stabilised {
  if (rules.length === 0) return { conversation, replacements: [] };
  const found = new Map<string, VolatileReplacement>();
  const messages = conversation.messages.map((message) => stabiliseMessage(message, rules, found));
  if (found.size === 0) return { conversation, replacements: [] };
  return { conversation: { ...conversation, messages }, replacements: [...found.values()] };
}

function stabiliseMessage(
  message: Message,
  rules: readonly VolatileRule[],
  found: Map<string, VolatileReplacement>,
): Message {
  const { role } = message;
  if (role === "assistant") return message;
  const applying = rules.filter((rule) => (rule.roles ?? ["system", "user"]).includes(role));
  if (applying.length === 0) return message;
  const replaceText = (part: TextPart): TextPart => {
    let text = part.text;
    for (const rule of applying) {
      text = text.replace(rule.pattern, (original) => {
        if (original !== rule.replacement) {
          // The history repeats in every call; one entry per distinct original is enough.
          found.set(JSON.stringify([rule.id, original]), {
            rule: rule.id,
            original,
            replacement: rule.replacement,
          });
        }
        return rule.replacement;
      });
    }
    return text === part.text ? part : { ...part, text };
  };
  if (role === "system") return { ...message, parts: message.parts.map(replaceText) };
  const replacePart = (part: TextPart | ImagePart): TextPart | ImagePart =>
    part.type === "text" ? replaceText(part) : part;
  return { ...message, parts: message.parts.map(replacePart) };
}
