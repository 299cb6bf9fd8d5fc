/**
 * Conversation to marked text to ids and spans, for one template and tokenizer.
 *
 * Law: without marks and breaks the text is what the template renders; its ids are those of the whole text tokenised at
 * once, so message borders never change them. Spans cover the ids in order, without gaps.
 */
import type { Conversation } from "@gimbal-rl/core";
import { ConversationConverter, type ConversationValues } from "./conversation-values.js";
import { type MarkedRun, removeBreaks, splitMarks } from "./marks.js";
import type { RenderedPrompt, RenderSpan } from "./renderer.js";
import type { ChatTemplate } from "./template.js";
import { booleanValue, plainToValue, stringValue, type TemplateValue } from "./template-values.js";
import type { LoadedTokenizer } from "./tokenizer.js";

/** Rendered text with breaks still inside, and who owns which part. */
export interface MarkedText {
  readonly text: string;
  readonly runs: readonly MarkedRun[];
  readonly contents: readonly string[];
}

/** Writes prompts. */
export class PromptWriter {
  readonly tokenizer: LoadedTokenizer;
  private readonly template: ChatTemplate;
  private readonly converter: ConversationConverter;
  private readonly fixed: ReadonlyMap<string, TemplateValue>;
  /** False when marks change what the template prints (a loop inside a captured block); spans are then coarse. */
  private marksAllowed = true;

  constructor(
    tokenizer: LoadedTokenizer,
    template: ChatTemplate,
    templateOptions: Readonly<Record<string, unknown>>,
  ) {
    this.tokenizer = tokenizer;
    this.template = template;
    this.converter = new ConversationConverter(tokenizer.addedTokens);
    this.fixed = new Map<string, TemplateValue>([
      ...Object.entries(tokenizer.namedTokens).map(
        ([name, text]) => [name, stringValue(text)] as const,
      ),
      ...Object.entries(templateOptions).map(
        ([name, value]) => [name, plainToValue(value)] as const,
      ),
    ]);
  }

  /** Compares marked and plain rendering of a probe; from a difference on, marks are not used. */
  checkMarks(probe: Conversation): void {
    const values = this.converter.convert(probe);
    const variables = this.variables(values, true);
    const marked = splitMarks(this.template.render(variables, values.owners)).text;
    if (marked !== this.template.render(variables)) this.marksAllowed = false;
  }

  private variables(
    values: ConversationValues,
    generationPrompt: boolean,
  ): Map<string, TemplateValue> {
    return new Map<string, TemplateValue>([
      ...this.fixed,
      ["messages", values.messages],
      ["tools", values.tools],
      ["add_generation_prompt", booleanValue(generationPrompt)],
    ]);
  }

  /** @throws {GimbalError} `template-unsupported`, `invalid-request`. */
  write(conversation: Conversation, generationPrompt: boolean): MarkedText {
    const values = this.converter.convert(conversation);
    const variables = this.variables(values, generationPrompt);
    const rendered = this.template.render(variables, this.marksAllowed ? values.owners : undefined);
    return { ...splitMarks(rendered), contents: values.contents };
  }

  encode(text: string): number[] {
    return this.tokenizer.encodePieces(text).flatMap((piece) => piece.ids);
  }

  /** Renders with a generation prompt, to ids and spans. */
  render(conversation: Conversation): RenderedPrompt {
    const marked = this.write(conversation, true);
    const borders = ownershipBorders(marked, conversation);
    const ids: number[] = [];
    const spans: RenderSpan[] = [];
    let border = 0;
    for (const piece of this.tokenizer.encodePieces(marked.text)) {
      const starts = this.idOffsets(piece);
      for (const [index, id] of piece.ids.entries()) {
        const offset = piece.start + (starts[index] ?? 0);
        while ((borders[border + 1]?.start ?? Number.POSITIVE_INFINITY) <= offset) border += 1;
        const owner = borders[border];
        ids.push(id);
        extendSpan(spans, ids.length, owner?.messageIndex ?? -1, owner?.part ?? "template");
      }
    }
    return { ids, spans };
  }

  /** Offset of each id inside its piece, in UTF-16 units; 0 for all when it cannot be known (not byte-level, NFC). */
  private idOffsets(piece: { readonly text: string; readonly ids: readonly number[] }): number[] {
    if (piece.ids.length <= 1) return [0];
    const lengths = piece.ids.map((id) => this.tokenizer.idToBytes(id)?.length);
    const plain = removeBreaks(piece.text);
    const total = lengths.reduce<number>((sum, length) => sum + (length ?? Number.NaN), 0);
    const sameAsUtf8 = total === new TextEncoder().encode(plain).length;
    if (!sameAsUtf8) return [];
    const offsets: number[] = [];
    let bytes = 0;
    let unit = 0;
    let unitBytes = 0;
    for (const length of lengths) {
      // Walks to the character that holds this id's first byte.
      while (unit < piece.text.length) {
        const width = utf8Width(piece.text, unit);
        if (unitBytes + width.bytes > bytes) break;
        unitBytes += width.bytes;
        unit += width.units;
      }
      offsets.push(unit);
      bytes += length ?? 0;
    }
    return offsets;
  }
}

/** Bytes in UTF-8 of the character at a position; breaks have none. */
function utf8Width(text: string, at: number): { readonly bytes: number; readonly units: number } {
  const code = text.codePointAt(at) ?? 0;
  if (code === 0xfdd2) {
    const literal = text.charCodeAt(at + 1) >= 0xfdd0 && text.charCodeAt(at + 1) <= 0xfdd2;
    return literal ? { bytes: 3, units: 2 } : { bytes: 0, units: 1 };
  }
  if (code < 0x80) return { bytes: 1, units: 1 };
  if (code < 0x800) return { bytes: 2, units: 1 };
  if (code < 0x10000) return { bytes: 3, units: 1 };
  return { bytes: 4, units: 2 };
}

interface Border {
  readonly start: number;
  readonly messageIndex: number;
  readonly part: RenderSpan["part"];
}

/** Refines owner runs: a message's own text is `content`, what the template wraps around it is `template`. */
function ownershipBorders(marked: MarkedText, conversation: Conversation): Border[] {
  const borders: Border[] = [];
  const owned = new Set(marked.runs.map((run) => run.owner));
  const lastOwned = marked.runs.findLastIndex((run) => run.owner !== "");
  const add = (start: number, end: number, messageIndex: number): void => {
    const content = marked.contents[messageIndex] ?? "";
    const at = content === "" ? -1 : marked.text.indexOf(content, start);
    borders.push({ start, messageIndex, part: "template" });
    if (at < 0 || at + content.length > end) return;
    borders.push({ start: at, messageIndex, part: "content" });
    borders.push({ start: at + content.length, messageIndex, part: "template" });
  };
  for (const [index, run] of marked.runs.entries()) {
    const end = marked.runs[index + 1]?.start ?? marked.text.length;
    if (end === run.start) continue;
    if (run.owner === "tool") {
      borders.push({ start: run.start, messageIndex: -1, part: "tools" });
    } else if (run.owner !== "") {
      add(run.start, end, Number(run.owner));
    } else if (index > lastOwned) {
      borders.push({ start: run.start, messageIndex: -1, part: "generation-prompt" });
    } else {
      // The preamble: templates print a leading system message outside their loop.
      const leading = conversation.messages[0]?.role === "system" && !hasText(marked, "0", owned);
      if (leading && index === 0) add(run.start, end, 0);
      else borders.push({ start: run.start, messageIndex: -1, part: "template" });
    }
  }
  return borders;
}

function hasText(marked: MarkedText, owner: string, owned: ReadonlySet<string>): boolean {
  if (!owned.has(owner)) return false;
  return marked.runs.some(
    (run, index) =>
      run.owner === owner && (marked.runs[index + 1]?.start ?? marked.text.length) > run.start,
  );
}

function extendSpan(
  spans: RenderSpan[],
  end: number,
  messageIndex: number,
  part: RenderSpan["part"],
): void {
  const last = spans.at(-1);
  if (last !== undefined && last.messageIndex === messageIndex && last.part === part) {
    spans[spans.length - 1] = { ...last, end };
  } else {
    spans.push({ start: last?.end ?? 0, end, messageIndex, part });
  }
}
