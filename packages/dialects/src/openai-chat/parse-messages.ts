/**
 * Wire messages to canonical messages.
 *
 * Law: text, tool-call ids and argument text arrive unchanged. A string content equals one text part. What cannot be
 * carried is named in `ignored` or refused.
 */
import type {
  AssistantMessage,
  ImagePart,
  JsonNode,
  JsonObject,
  Message,
  TextPart,
  ToolCallPart,
} from "@gimbal-rl/core";
import { describe, invalid, optionalString, present, refused } from "./fields.js";

type Part = TextPart | ImagePart;

/** A map, not an object: a role comes from the wire and may be the name of an inherited member. */
const knownKeys: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["system", new Set(["role", "content"])],
  ["developer", new Set(["role", "content"])],
  ["user", new Set(["role", "content"])],
  [
    "assistant",
    new Set(["role", "content", "tool_calls", "reasoning_content", "reasoning", "refusal"]),
  ],
  ["tool", new Set(["role", "content", "tool_call_id"])],
]);

/** Parts whose content no text model can read. */
const refusedParts: ReadonlySet<string> = new Set(["input_audio", "audio", "file", "video_url"]);

/**
 * Translates `messages`.
 * @throws {GimbalError} `invalid-request` or `request-field-refused`, naming the field.
 */
export function parseMessages(
  node: JsonNode | undefined,
  text: string,
  ignored: Set<string>,
): Message[] {
  if (node?.kind !== "array" || node.items.length === 0) {
    throw invalid("messages", describe(node), "an array with at least one message");
  }
  return node.items.map((item, index) => parseMessage(item, `messages[${index}]`, text, ignored));
}

function parseMessage(node: JsonNode, path: string, text: string, ignored: Set<string>): Message {
  if (node.kind !== "object") throw invalid(path, describe(node), "a message object");
  const role = optionalString(node, "role", `${path}.`);
  const known = role === undefined ? undefined : knownKeys.get(role);
  if (role === undefined || known === undefined) {
    throw invalid(
      `${path}.role`,
      role === undefined ? "nothing" : JSON.stringify(role),
      "system, developer, user, assistant or tool",
    );
  }
  for (const { key } of node.entries) {
    if (!known.has(key)) ignored.add(`messages[].${key}`);
  }
  switch (role) {
    case "user":
      return { role, parts: parseContent(node, path, ignored) };
    case "assistant":
      return parseAssistant(node, path, text, ignored);
    case "tool": {
      const toolCallId = optionalString(node, "tool_call_id", `${path}.`);
      if (toolCallId === undefined) {
        throw invalid(`${path}.tool_call_id`, "nothing", "the id of the call this answers");
      }
      return { role, toolCallId, parts: parseContent(node, path, ignored) };
    }
    default: {
      const parts = textOnly(parseContent(node, path, ignored), path);
      return role === "system" ? { role, parts } : { role: "system", parts, wireRole: role };
    }
  }
}

function textOnly(parts: readonly Part[], path: string): TextPart[] {
  return parts.map((part) => {
    if (part.type === "text") return part;
    throw refused(
      `${path}.content`,
      "an image is allowed in user and tool messages only",
      "Move it.",
    );
  });
}

function parseContent(message: JsonObject, path: string, ignored: Set<string>): Part[] {
  const content = present(message, "content");
  if (content === undefined) return [];
  if (content.kind === "string") return textPart(content.value);
  if (content.kind !== "array") {
    throw invalid(`${path}.content`, describe(content), "a string or an array of parts");
  }
  return content.items.flatMap((part, index) =>
    parsePart(part, `${path}.content[${index}]`, ignored),
  );
}

function textPart(text: string): TextPart[] {
  return text === "" ? [] : [{ type: "text", text }];
}

function parsePart(part: JsonNode, path: string, ignored: Set<string>): Part[] {
  const type = optionalString(part, "type", `${path}.`);
  if (part.kind !== "object" || type === undefined) {
    throw invalid(path, describe(part), "a content part with a type");
  }
  for (const { key } of part.entries) {
    if (key !== "type" && key !== type) ignored.add(`messages[].content[].${key}`);
  }
  switch (type) {
    case "text":
    case "refusal": {
      const value = optionalString(part, type, `${path}.`);
      if (value === undefined) throw invalid(`${path}.${type}`, "nothing", "a string");
      return textPart(value);
    }
    case "image_url": {
      const image = present(part, "image_url");
      const url =
        image?.kind === "string"
          ? image.value
          : image === undefined
            ? undefined
            : optionalString(image, "url", `${path}.image_url.`);
      if (url === undefined) throw invalid(`${path}.image_url.url`, "nothing", "a URL");
      return [{ type: "image", url }];
    }
    default:
      if (refusedParts.has(type)) {
        throw refused(path, `parts of type "${type}" cannot be read by a text model`, "Send text.");
      }
      ignored.add(`messages[].content[] (type ${type})`);
      return [];
  }
}

function parseAssistant(
  node: JsonObject,
  path: string,
  text: string,
  ignored: Set<string>,
): AssistantMessage {
  const parts: AssistantMessage["parts"][number][] = [];
  const reasoning =
    optionalString(node, "reasoning_content", `${path}.`) ??
    optionalString(node, "reasoning", `${path}.`);
  if (reasoning !== undefined && reasoning !== "")
    parts.push({ type: "reasoning", text: reasoning });
  parts.push(...textOnly(parseContent(node, path, ignored), path));
  parts.push(...textPart(optionalString(node, "refusal", `${path}.`) ?? ""));
  const calls = present(node, "tool_calls");
  if (calls !== undefined) {
    if (calls.kind !== "array") throw invalid(`${path}.tool_calls`, describe(calls), "an array");
    for (const [index, call] of calls.items.entries()) {
      parts.push(parseCall(call, `${path}.tool_calls[${index}]`, text));
    }
  }
  return { role: "assistant", parts };
}

function parseCall(node: JsonNode, path: string, text: string): ToolCallPart {
  const toolCallId = optionalString(node, "id", `${path}.`);
  const call = present(node, "function");
  const name = call === undefined ? undefined : optionalString(call, "name", `${path}.function.`);
  if (toolCallId === undefined) throw invalid(`${path}.id`, "nothing", "the id of the call");
  if (call === undefined || name === undefined) {
    throw invalid(`${path}.function.name`, "nothing", "the name of a function tool");
  }
  const args = present(call, "arguments");
  // A string by the API; some clients send the object itself, whose text is kept as it is.
  const argumentsText =
    args === undefined
      ? ""
      : args.kind === "string"
        ? args.value
        : text.slice(args.start, args.end);
  return { type: "tool-call", toolCallId, name, argumentsText };
}
