/**
 * Sampled ids to turn events and a parsed turn.
 *
 * Law: ids are fed one at a time whatever the caller's batches, so the same ids give the same events in any split.
 */
import type { AssistantMessage, TurnEvent } from "@gimbal-rl/core";
import type { OutputParser, Tokenizer } from "./renderer.js";
import { type TurnFormat, type TurnPiece, TurnTextParser } from "./turn-text-parser.js";

/** What a parser needs. */
export interface OutputParserOptions {
  readonly tokenizer: Tokenizer;
  /** Ids that are not shown as text. */
  readonly stopIds: ReadonlySet<number>;
  readonly format: TurnFormat;
  readonly mintToolCallId: () => string;
}

type Part = AssistantMessage["parts"][number];

/** Creates a parser for one turn. */
export function createTurnParser(options: OutputParserOptions): OutputParser {
  const decoder = options.tokenizer.createIncrementalDecoder();
  const parser = new TurnTextParser(options.format);
  const parts: Part[] = [];
  let toolCalls = 0;

  const append = (type: "text" | "reasoning", text: string): void => {
    const last = parts.at(-1);
    if (last?.type === type) parts[parts.length - 1] = { ...last, text: last.text + text };
    else parts.push({ type, text });
  };
  const accept = (piece: TurnPiece): TurnEvent => {
    switch (piece.type) {
      case "text-delta":
        append("text", piece.text);
        return piece;
      case "reasoning-delta":
        append("reasoning", piece.text);
        return piece;
      case "tool-call": {
        toolCalls += 1;
        const call = {
          type: "tool-call",
          toolCallId: options.mintToolCallId(),
          name: piece.call.name,
          argumentsText: piece.call.argumentsText,
        } as const;
        parts.push(call);
        return { type: "tool-call", call };
      }
      default:
        return piece satisfies never;
    }
  };

  return {
    push(ids) {
      const events: TurnEvent[] = [];
      for (const id of ids) {
        if (options.stopIds.has(id)) continue;
        const text = decoder.push(id);
        if (text === "") continue;
        for (const piece of parser.push(text)) events.push(accept(piece));
      }
      return events;
    },
    end() {
      const pieces = [...parser.push(decoder.end()), ...parser.end()];
      const events = pieces.map(accept);
      const message: AssistantMessage = { role: "assistant", parts };
      return { events, turn: { message, malformed: parser.malformed, toolCalls } };
    },
  };
}
