import type { Conversation } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import {
  defaultVolatileRules,
  stabiliseConversation,
  type VolatileRule,
} from "./volatile-rules.js";

const conversationOf = (system: string, user: string, assistant: string): Conversation => ({
  messages: [
    { role: "system", parts: [{ type: "text", text: system }] },
    { role: "user", parts: [{ type: "text", text: user }] },
    { role: "assistant", parts: [{ type: "text", text: assistant }] },
    { role: "tool", toolCallId: "c", parts: [{ type: "text", text: "in /tmp/w-9f" }] },
  ],
  tools: [],
});
const paths: VolatileRule = {
  id: "path",
  pattern: /\/tmp\/w-[0-9a-f]+/g,
  replacement: "/workspace",
  roles: ["system", "user", "tool"],
};

describe("volatile rules", () => {
  it("make two runs that differ only in paths and hashes equal, and list what they replaced once", () => {
    const rules = [...defaultVolatileRules, paths];
    const a = stabiliseConversation(
      conversationOf(
        "x-anthropic-billing-header: cc=1; h=ab\nBe kind.",
        "/tmp/w-1 and /tmp/w-1",
        "ok",
      ),
      rules,
    );
    const b = stabiliseConversation(
      conversationOf(
        "x-anthropic-billing-header: cc=2; h=cd\nBe kind.",
        "/tmp/w-2 and /tmp/w-2",
        "ok",
      ),
      rules,
    );
    expect(a.conversation).toEqual(b.conversation);
    expect(a.replacements).toEqual([
      {
        rule: "anthropic-billing-header",
        original: "x-anthropic-billing-header: cc=1; h=ab",
        replacement: "x-anthropic-billing-header: -",
      },
      { rule: "path", original: "/tmp/w-1", replacement: "/workspace" },
      { rule: "path", original: "/tmp/w-9f", replacement: "/workspace" },
    ]);
  });

  it("never touch an assistant turn, and return the same object when nothing matches", () => {
    const sampled = conversationOf("s", "u", "I wrote /tmp/w-1");
    const { conversation } = stabiliseConversation(sampled, [paths]);
    expect(conversation.messages[2]).toBe(sampled.messages[2]);
    const untouched = { messages: sampled.messages.slice(0, 3), tools: [] };
    expect(stabiliseConversation(untouched, [paths]).conversation).toBe(untouched);
  });
});
