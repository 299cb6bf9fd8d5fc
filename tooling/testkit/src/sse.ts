/**
 * Readers of server-sent events, strict enough to notice a broken stream.
 */

/** One event, or one comment line, in order of arrival. */
export interface SseItem {
  readonly type: "event" | "comment";
  /** The `event:` field; empty when absent. */
  readonly event: string;
  readonly data: string;
}

/** Splits the text of a finished stream. Throws when it does not end with a blank line. */
export function parseSse(text: string): SseItem[] {
  if (text !== "" && !text.endsWith("\n\n")) {
    throw new Error(`The stream ends inside an event: ${JSON.stringify(text.slice(-60))}.`);
  }
  const items: SseItem[] = [];
  for (const block of text.split("\n\n")) {
    if (block === "") continue;
    let event = "";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      if (line.startsWith(":")) items.push({ type: "comment", event: "", data: line.slice(1) });
      else if (line.startsWith("event:")) event = line.slice(6).trim();
      else if (line.startsWith("data:")) data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
      else throw new Error(`Unknown line in a stream: ${JSON.stringify(line)}.`);
    }
    if (data.length > 0) items.push({ type: "event", event, data: data.join("\n") });
  }
  return items;
}

/** The JSON of every data event of a chat stream, `[DONE]` left out. Throws when `[DONE]` is missing. */
export function parseChatChunks(text: string): Record<string, unknown>[] {
  const data = parseSse(text)
    .filter((item) => item.type === "event")
    .map((item) => item.data);
  if (data.at(-1) !== "[DONE]") throw new Error("The chat stream does not end with [DONE].");
  return data.slice(0, -1).map((line) => JSON.parse(line) as Record<string, unknown>);
}
