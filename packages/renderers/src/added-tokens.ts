/**
 * Added tokens: strings that a tokenizer cuts out of text before anything else.
 *
 * Law: in text from a message, `breakAll` puts a break inside every occurrence, so that no added token can be formed.
 */
import { breakMark } from "./marks.js";

/** One entry of `added_tokens` in tokenizer.json. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
}

/** A piece of text after cutting: an added token, or ordinary text. */
export type TextPiece =
  | { readonly kind: "token"; readonly token: AddedToken; readonly start: number }
  | { readonly kind: "text"; readonly text: string; readonly start: number };

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}

function alternation(tokens: readonly AddedToken[]): string | null {
  if (tokens.length === 0) return null;
  // Leftmost-longest, as the Rust tokenizer matches: an alternation tries its branches in order.
  return [...tokens]
    .sort((a, b) => b.content.length - a.content.length)
    .map((token) => escapeRegExp(token.content))
    .join("|");
}

/** Finds and breaks added tokens in text. */
export class AddedTokenSet {
  readonly tokens: readonly AddedToken[];
  private readonly byContent: ReadonlyMap<string, AddedToken>;
  private readonly matcher: RegExp | null;
  private readonly starts: { readonly all: RegExp | null; readonly special: RegExp | null };

  constructor(tokens: readonly AddedToken[]) {
    this.tokens = tokens;
    this.byContent = new Map(tokens.map((token) => [token.content, token]));
    const pattern = alternation(tokens);
    this.matcher = pattern === null ? null : new RegExp(pattern, "g");
    // A one-character token cannot be broken; it carries no structure and stays.
    const startPattern = (subset: readonly AddedToken[]): RegExp | null => {
      const source = alternation(subset.filter((token) => token.content.length > 1));
      return source === null ? null : new RegExp(`(?=${source})`, "g");
    };
    this.starts = {
      all: startPattern(tokens),
      special: startPattern(tokens.filter((token) => token.special)),
    };
  }

  get(content: string): AddedToken | undefined {
    return this.byContent.get(content);
  }

  /** Puts a break after the first character of every occurrence, overlapping ones included. */
  breakAll(text: string, which: "all" | "special"): string {
    const matcher = this.starts[which];
    if (matcher === null) return text;
    let result = "";
    let from = 0;
    for (const match of text.matchAll(matcher)) {
      result += text.slice(from, match.index + 1) + breakMark;
      from = match.index + 1;
    }
    return from === 0 ? text : result + text.slice(from);
  }

  /** Cuts text into added tokens and the text between them. */
  split(text: string): TextPiece[] {
    if (this.matcher === null) return text === "" ? [] : [{ kind: "text", text, start: 0 }];
    const pieces: TextPiece[] = [];
    let from = 0;
    let trimNext = false;
    const pushText = (end: number, trimEnd: boolean): void => {
      let piece = text.slice(from, end);
      if (trimNext) piece = piece.trimStart();
      if (trimEnd) piece = piece.trimEnd();
      if (piece !== "") pieces.push({ kind: "text", text: piece, start: from });
    };
    for (const match of text.matchAll(this.matcher)) {
      const token = this.byContent.get(match[0]);
      if (token === undefined) continue;
      pushText(match.index, token.lstrip);
      pieces.push({ kind: "token", token, start: match.index });
      from = match.index + match[0].length;
      trimNext = token.rstrip;
    }
    pushText(text.length, false);
    return pieces;
  }
}
