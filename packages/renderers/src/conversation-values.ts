/**
 * The canonical conversation as a chat template reads it (the message form of the OpenAI API).
 *
 * Law: text of system, user and tool messages and of tool definitions never forms an added token; assistant text never
 * forms a special one. Tool arguments and definitions go in as lossless JSON, so `tojson` prints them as Python would.
 */
import {
  type AssistantMessage,
  type Conversation,
  GimbalError,
  type JsonNode,
  type Message,
  parseJsonText,
  type ToolDefinition,
} from "@gimbal-rl/core";
import type { AddedTokenSet } from "./added-tokens.js";
import { escapeMarks } from "./marks.js";
import {
  arrayValue,
  jsonToValue,
  nullValue,
  objectValue,
  stringValue,
  type TemplateValue,
} from "./template-values.js";

/** Template values of a conversation, and whose they are. */
export interface ConversationValues {
  readonly messages: TemplateValue;
  readonly tools: TemplateValue;
  /** Message value to its index, tool value to `tool`. */
  readonly owners: ReadonlyMap<TemplateValue, string>;
  /** The escaped main text of each message, as it went into the template. */
  readonly contents: readonly string[];
}

/** Turns conversations into template values with escaping for one tokenizer. */
export class ConversationConverter {
  private readonly addedTokens: AddedTokenSet;
  /** Tool definitions repeat on every call; converted once per text. */
  private toolsCache: { readonly key: string; readonly values: TemplateValue[] } | null = null;

  constructor(addedTokens: AddedTokenSet) {
    this.addedTokens = addedTokens;
  }

  /** @throws {GimbalError} `invalid-request` for images and for tool definitions that are not JSON. */
  convert(conversation: Conversation): ConversationValues {
    const owners = new Map<TemplateValue, string>();
    const contents: string[] = [];
    const toolNames = new Map<string, string>();
    const messages = conversation.messages.map((message, index) => {
      const content = this.content(message, index);
      contents.push(content);
      if (message.role === "assistant") {
        for (const part of message.parts) {
          if (part.type === "tool-call") toolNames.set(part.toolCallId, part.name);
        }
      }
      const value = this.message(message, content, toolNames);
      owners.set(value, String(index));
      return value;
    });
    const tools = this.tools(conversation.tools);
    for (const tool of tools) owners.set(tool, "tool");
    return {
      messages: arrayValue(messages),
      tools: tools.length === 0 ? nullValue : arrayValue(tools),
      owners,
      contents,
    };
  }

  private readonly given = (text: string): string =>
    this.addedTokens.breakAll(escapeMarks(text), "all");
  private readonly sampled = (text: string): string =>
    this.addedTokens.breakAll(escapeMarks(text), "special");

  private content(message: Message, index: number): string {
    let text = "";
    for (const part of message.parts) {
      if (part.type === "text") text += part.text;
      else if (part.type === "image") {
        throw new GimbalError(
          "invalid-request",
          `messages[${index}] holds an image; this model takes text only. Send the text without the image.`,
        );
      }
    }
    return message.role === "assistant" ? this.sampled(text) : this.given(text);
  }

  private message(
    message: Message,
    content: string,
    toolNames: ReadonlyMap<string, string>,
  ): TemplateValue {
    const role = stringValue(message.role);
    switch (message.role) {
      case "system":
      case "user":
        return objectValue([
          ["role", role],
          ["content", stringValue(content)],
        ]);
      case "tool": {
        const name = toolNames.get(message.toolCallId);
        return objectValue([
          ["role", role],
          ["content", stringValue(content)],
          ["tool_call_id", stringValue(this.given(message.toolCallId))],
          ["name", name === undefined ? undefined : stringValue(this.given(name))],
        ]);
      }
      case "assistant":
        return this.assistant(message, role, content);
      default:
        return message satisfies never;
    }
  }

  private assistant(
    message: AssistantMessage,
    role: TemplateValue,
    content: string,
  ): TemplateValue {
    let reasoning = "";
    const calls: TemplateValue[] = [];
    for (const part of message.parts) {
      if (part.type === "reasoning") reasoning += part.text;
      if (part.type !== "tool-call") continue;
      const fn = objectValue([
        ["name", stringValue(this.sampled(part.name))],
        ["arguments", this.argumentsValue(part.argumentsText)],
      ]);
      calls.push(
        objectValue([
          ["id", stringValue(this.sampled(part.toolCallId))],
          ["type", stringValue("function")],
          ["function", fn],
        ]),
      );
    }
    return objectValue([
      ["role", role],
      ["content", stringValue(content)],
      ["reasoning_content", reasoning === "" ? undefined : stringValue(this.sampled(reasoning))],
      ["tool_calls", calls.length === 0 ? undefined : arrayValue(calls)],
    ]);
  }

  /** As inference servers do: a JSON object goes in as a mapping, anything else as the text it is. */
  private argumentsValue(text: string): TemplateValue {
    let node: JsonNode;
    try {
      node = parseJsonText(text);
    } catch {
      return stringValue(this.sampled(text));
    }
    if (node.kind !== "object") return stringValue(this.sampled(text));
    return jsonToValue(node, this.sampled);
  }

  private tools(tools: readonly ToolDefinition[]): TemplateValue[] {
    const key = tools.map((tool) => tool.definitionText).join("\n");
    if (this.toolsCache?.key === key) return this.toolsCache.values;
    const values = tools.map((tool) => jsonToValue(parseJsonText(tool.definitionText), this.given));
    this.toolsCache = { key, values };
    return values;
  }
}
