/**
 * One assistant turn as text to events: `<think>` reasoning, text, Hermes/Qwen tool calls.
 *
 * Laws. (1) Events are a function of the whole text; how it was cut into pieces only moves the borders between deltas.
 * (2) Text and reasoning leave as soon as they are certain; a tool call leaves once, complete and valid. (3) What looked
 * like a call and is not one leaves as text, verbatim. (4) Whitespace that only separates blocks is dropped: after
 * `<think>` and around `</think>`, before a call, between calls and after the last one.
 */
import type { TurnEvent } from "@gimbal-rl/core";
import { parseToolCallText, StringScanner, type ToolCallText } from "./tool-call-text.js";

/** How a turn is written. */
export interface TurnFormat {
  /** The generation prompt already opened a think block. */
  readonly startsInReasoning: boolean;
  /** Whether `<think>` blocks exist in this family. */
  readonly reasoning: boolean;
  /** Whether `<tool_call>` blocks exist and tools are on offer. */
  readonly toolCalls: boolean;
}

/** A piece of a turn: an event, or a call still without its id. */
export type TurnPiece =
  | Exclude<TurnEvent, { readonly type: "tool-call" }>
  | { readonly type: "tool-call"; readonly call: ToolCallText };

const thinkOpen = "<think>";
const thinkClose = "</think>";
const callOpen = "<tool_call>";
const callClose = "</tool_call>";

type State = "start" | "reasoning" | "text" | "call";

/** Length of the longest end of `text` that is a beginning of `tag`, but not all of it. */
function partialTag(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}

/** The parser. Use once per turn. */
export class TurnTextParser {
  private readonly format: TurnFormat;
  private state: State;
  /** Text that arrived and is not decided yet. */
  private pending = "";
  /** Whitespace that is dropped if a block follows and kept if text follows. */
  private space = "";
  /** Whether the next whitespace only separates blocks. */
  private separating: boolean;
  private scanner = new StringScanner();
  /** In a call: where in `pending` the search for its end goes on. */
  private searched = 0;
  malformed = false;

  constructor(format: TurnFormat) {
    this.format = format;
    this.state = format.startsInReasoning ? "reasoning" : "start";
    this.separating = format.startsInReasoning;
  }

  /** Feeds text; returns what became certain. */
  push(text: string): TurnPiece[] {
    this.pending += text;
    const out: TurnPiece[] = [];
    while (this.step(out));
    return out;
  }

  /** Ends the turn; returns the rest. */
  end(): TurnPiece[] {
    const out: TurnPiece[] = [];
    if (this.state === "call") this.rejectCall(out, this.pending.length);
    this.emit(out, this.pending);
    this.pending = "";
    this.flushSpace(out);
    return out;
  }

  /** One step; false when more text is needed. */
  private step(out: TurnPiece[]): boolean {
    switch (this.state) {
      case "start":
        return this.stepStart();
      case "reasoning":
        return this.stepReasoning(out);
      case "text":
        return this.stepText(out);
      case "call":
        return this.stepCall(out);
      default:
        return this.state satisfies never;
    }
  }

  private stepStart(): boolean {
    if (!this.format.reasoning) {
      this.state = "text";
      return true;
    }
    const trimmed = this.pending.trimStart();
    if (trimmed.startsWith(thinkOpen)) {
      this.pending = trimmed.slice(thinkOpen.length);
      this.state = "reasoning";
      this.separating = true;
      return true;
    }
    if (thinkOpen.startsWith(trimmed)) return false;
    this.state = "text";
    return true;
  }

  private stepReasoning(out: TurnPiece[]): boolean {
    const at = this.pending.indexOf(thinkClose);
    if (at >= 0) {
      this.emit(out, this.pending.slice(0, at));
      this.pending = this.pending.slice(at + thinkClose.length);
      this.space = "";
      this.separating = true;
      this.state = "text";
      return true;
    }
    this.emitCertain(out, partialTag(this.pending, thinkClose));
    return false;
  }

  private stepText(out: TurnPiece[]): boolean {
    if (!this.format.toolCalls) {
      this.emitCertain(out, 0);
      return false;
    }
    const at = this.pending.indexOf(callOpen);
    if (at >= 0) {
      this.emit(out, this.pending.slice(0, at));
      this.pending = this.pending.slice(at);
      this.scanner = new StringScanner();
      this.searched = callOpen.length;
      this.state = "call";
      return true;
    }
    this.emitCertain(out, partialTag(this.pending, callOpen));
    return false;
  }

  private stepCall(out: TurnPiece[]): boolean {
    const at = this.pending.indexOf(callClose, this.searched);
    if (at < 0) return false;
    const insideString = this.scanner.feed(this.pending.slice(this.searched, at));
    if (insideString) {
      // A closing tag inside a string is part of the string; the call ends at a later one, or is malformed.
      this.scanner.feed(callClose);
      this.searched = at + callClose.length;
      return true;
    }
    const call = parseToolCallText(this.pending.slice(callOpen.length, at));
    if (call === null) {
      this.rejectCall(out, at + callClose.length);
      return true;
    }
    out.push({ type: "tool-call", call });
    this.pending = this.pending.slice(at + callClose.length);
    this.space = "";
    this.separating = true;
    this.state = "text";
    return true;
  }

  /**
   * Gives the block up to `end` back as text. Everything that was taken for the inside of one of its strings goes with it:
   * a call that appears only there was never made.
   */
  private rejectCall(out: TurnPiece[], end: number): void {
    this.malformed = true;
    if (this.separating) this.space = "";
    this.separating = false;
    this.emit(out, this.pending.slice(0, end));
    this.pending = this.pending.slice(end);
    this.state = "text";
  }

  /** Emits pending text except its last `held` characters. */
  private emitCertain(out: TurnPiece[], held: number): void {
    const cut = this.pending.length - held;
    this.emit(out, this.pending.slice(0, cut));
    this.pending = this.pending.slice(cut);
  }

  private emit(out: TurnPiece[], text: string): void {
    let rest = text;
    if (this.separating) {
      // Leading whitespace of a block; a newline run in practice. Kept aside so that raw text can still show it.
      const trimmed = rest.trimStart();
      if (trimmed === "") {
        this.space += rest;
        return;
      }
      rest = trimmed;
      this.space = "";
      this.separating = false;
    }
    if (rest === "") return;
    const body = rest.trimEnd();
    if (body === "") {
      this.space += rest;
      return;
    }
    this.delta(out, this.space + body);
    this.space = rest.slice(body.length);
  }

  private flushSpace(out: TurnPiece[]): void {
    if (this.space !== "" && !this.separating) this.delta(out, this.space);
    this.space = "";
  }

  private delta(out: TurnPiece[], text: string): void {
    const type = this.state === "reasoning" ? "reasoning-delta" : "text-delta";
    out.push({ type, text });
  }
}
