/**
 * The inside of a Hermes/Qwen `<tool_call>` block: `{"name": ..., "arguments": {...}}`.
 *
 * Law: a call is valid only if the text is one JSON object with a string `name` and an object `arguments`, each once. The
 * arguments are the slice of the text as sampled. Anything else is not a call; nothing is repaired.
 */
import { type JsonNode, type JsonObject, parseJsonText } from "@gimbal-rl/core";

/** A valid call. */
export interface ToolCallText {
  readonly name: string;
  readonly argumentsText: string;
}

/** Reads a block's text; null when it is not a valid call. */
export function parseToolCallText(text: string): ToolCallText | null {
  let node: JsonNode;
  try {
    node = parseJsonText(text);
  } catch {
    return null;
  }
  if (node.kind !== "object") return null;
  const name = only(node, "name");
  const args = only(node, "arguments");
  if (name?.kind !== "string" || name.value === "" || args?.kind !== "object") return null;
  return { name: name.value, argumentsText: text.slice(args.start, args.end) };
}

function only(node: JsonObject, key: string): JsonNode | undefined {
  const found = node.entries.filter((entry) => entry.key === key);
  return found.length === 1 ? found[0]?.value : undefined;
}

/** Tracks, piece by piece, whether a JSON text is inside a string. */
export class StringScanner {
  private inside = false;
  private escaped = false;

  /** Feeds text; returns whether its end lies inside a string. */
  feed(text: string): boolean {
    for (let i = 0; i < text.length; i += 1) {
      const character = text[i];
      if (this.escaped) this.escaped = false;
      else if (!this.inside) this.inside = character === '"';
      else if (character === "\\") this.escaped = true;
      else if (character === '"') this.inside = false;
    }
    return this.inside;
  }
}
