import type { Conversation, Message } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { countCharacters } from "./count-characters.js";

const of = (messages: readonly Message[]): number =>
  countCharacters({ messages, tools: [] } as Conversation);

describe("countCharacters", () => {
  it("counts texts, names and arguments", () => {
    const call = (name: string, argumentsText: string): Message =>
      ({
        role: "assistant",
        parts: [{ type: "tool-call", toolCallId: "c", name, argumentsText }],
      }) as Message;
    expect(of([call("ab".repeat(500), "")]) - of([call("", "")])).toBe(1000);
    expect(of([call("", "x".repeat(70))]) - of([call("", "")])).toBe(70);
    const text = (value: string): Message =>
      ({ role: "user", parts: [{ type: "text", text: value }] }) as Message;
    expect(of([text("hello")]) - of([text("")])).toBe(5);
  });

  it("counts messages and calls that hold nothing", () => {
    const empty = { role: "user", parts: [] } as unknown as Message;
    const call = { type: "tool-call", toolCallId: "", name: "", argumentsText: "" };
    const calls = { role: "assistant", parts: Array(1000).fill(call) } as unknown as Message;
    expect(of(Array(1000).fill(empty))).toBeGreaterThanOrEqual(16_000);
    expect(of([calls])).toBeGreaterThanOrEqual(16_000);
  });
});
