/**
 * A Chat Completions request body to a ParsedRequest.
 */
import {
  type AskedSampling,
  type JsonNode,
  jsonMember,
  parseJsonText,
  type ToolDefinition,
} from "@gimbal-rl/core";
import type { ParsedRequest } from "../dialect.js";
import {
  describe,
  honouredFields,
  invalid,
  optionalBoolean,
  optionalNumber,
  optionalString,
  present,
  refuseFields,
} from "./fields.js";
import { parseMessages } from "./parse-messages.js";

/**
 * Translates a body once, keeping the raw text of tool definitions and arguments.
 * @throws {GimbalError} `invalid-request` or `request-field-refused`, naming the field.
 */
export function parseChatRequest(text: string): ParsedRequest {
  const body = parseJsonText(text);
  if (body.kind !== "object") throw invalid("body", describe(body), "a JSON object");
  refuseFields(body);
  const ignored = new Set<string>();
  for (const { key } of body.entries) if (!honouredFields.has(key)) ignored.add(key);
  const streamOptions = present(body, "stream_options");
  if (streamOptions?.kind === "object") {
    for (const { key } of streamOptions.entries) {
      if (key !== "include_usage") ignored.add(`stream_options.${key}`);
    }
  }
  const model = optionalString(body, "model", "");
  if (model === undefined) throw invalid("model", "nothing", "a model name");
  const tools = parseTools(present(body, "tools"), text, ignored);
  return {
    model,
    conversation: { messages: parseMessages(jsonMember(body, "messages"), text, ignored), tools },
    stream: optionalBoolean(body, "stream", "") ?? false,
    includeUsage:
      streamOptions !== undefined &&
      optionalBoolean(streamOptions, "include_usage", "stream_options.") === true,
    toolChoice: parseToolChoice(present(body, "tool_choice"), tools, ignored),
    sampling: parseSampling(body),
    stop: parseStop(present(body, "stop")),
    ignoredFields: [...ignored],
  };
}

function parseSampling(body: JsonNode): AskedSampling {
  const whole = { min: 1, max: Number.MAX_SAFE_INTEGER, integer: true };
  const temperature = optionalNumber(body, "temperature", { min: 0, max: 2, integer: false });
  const topP = optionalNumber(body, "top_p", { min: 0, max: 1, integer: false });
  const topK = optionalNumber(body, "top_k", { ...whole, min: -1 });
  const maxTokens =
    optionalNumber(body, "max_completion_tokens", whole) ??
    optionalNumber(body, "max_tokens", whole);
  const seed = optionalNumber(body, "seed", { ...whole, min: Number.MIN_SAFE_INTEGER });
  return {
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK: Math.max(topK, 0) }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(seed === undefined ? {} : { seed }),
  };
}

function parseStop(node: JsonNode | undefined): string[] {
  if (node === undefined) return [];
  const items = node.kind === "array" ? node.items : [node];
  return items.map((item) => {
    if (item.kind !== "string" || item.value === "") {
      throw invalid("stop", describe(item), "a non-empty string or an array of them");
    }
    return item.value;
  });
}

function parseTools(
  node: JsonNode | undefined,
  text: string,
  ignored: Set<string>,
): ToolDefinition[] {
  if (node === undefined) return [];
  if (node.kind !== "array") throw invalid("tools", describe(node), "an array");
  const tools: ToolDefinition[] = [];
  for (const [index, entry] of node.items.entries()) {
    const type = optionalString(entry, "type", `tools[${index}].`);
    const fn = present(entry, "function");
    if (type !== "function") {
      // Hosted and custom tools: nobody serves them here, and the harness lives without.
      ignored.add(`tools[] (type ${type ?? "missing"})`);
      continue;
    }
    const path = `tools[${index}].function.`;
    const name = fn === undefined ? undefined : optionalString(fn, "name", path);
    if (fn === undefined || name === undefined) {
      throw invalid(`${path}name`, "nothing", "the name of a function");
    }
    if (optionalBoolean(fn, "strict", path) === true) ignored.add("tools[].function.strict");
    const description = optionalString(fn, "description", path);
    const schema = present(fn, "parameters");
    tools.push({
      name,
      ...(description === undefined ? {} : { description }),
      schemaText: schema === undefined ? "{}" : text.slice(schema.start, schema.end),
      definitionText: text.slice(entry.start, entry.end),
    });
  }
  return tools;
}

function parseToolChoice(
  node: JsonNode | undefined,
  tools: readonly ToolDefinition[],
  ignored: Set<string>,
): ParsedRequest["toolChoice"] {
  if (node === undefined) return "auto";
  if (node.kind === "string") {
    if (node.value === "auto" || node.value === "none" || node.value === "required")
      return node.value;
    throw invalid("tool_choice", describe(node), "auto, none, required or a function");
  }
  const fn = present(node, "function");
  const name = fn === undefined ? undefined : optionalString(fn, "name", "tool_choice.function.");
  if (name === undefined) {
    ignored.add("tool_choice");
    return "auto";
  }
  if (!tools.some((tool) => tool.name === name)) {
    throw invalid("tool_choice.function.name", JSON.stringify(name), "the name of an offered tool");
  }
  return { name };
}
