/**
 * Hugging Face `tokenizer.json` behind our Tokenizer interface.
 *
 * Law: ids equal those of the Rust tokenizer for the same text (special tokens off at the ends). Added tokens are cut out
 * by us, because the library cannot switch them off; ordinary text goes through the library's own pipeline.
 */
import { GimbalError } from "@gimbal-rl/core";
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { type AddedToken, AddedTokenSet } from "./added-tokens.js";
import { byteLevelBytes } from "./byte-level.js";
import { removeBreaks } from "./marks.js";
import type { Tokenizer } from "./renderer.js";

/** A run of ids made from one piece of text; `start` is the offset of the piece. */
export interface EncodedPiece {
  readonly start: number;
  readonly text: string;
  readonly ids: readonly number[];
}

/** A tokenizer with what the renderer needs beyond the public interface. */
export interface LoadedTokenizer extends Tokenizer {
  readonly addedTokens: AddedTokenSet;
  /** String tokens named in the config (`bos_token`, `eos_token`, ...), for templates. */
  readonly namedTokens: Readonly<Record<string, string>>;
  /** Encodes template text that may hold breaks; added tokens become their ids except where broken. */
  encodePieces(text: string): EncodedPiece[];
  /** Bytes that an id stands for; undefined when the tokenizer is not byte-level. */
  idToBytes(id: number): Uint8Array | undefined;
}

/** Ids decoded together by the decoder for tokenizers that are not byte-level, and those kept when it is full. */
const windowLimit = 64;
const windowContext = 16;

type JsonRecord = Record<string, unknown>;

function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parseFile(text: string, name: string): JsonRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new GimbalError(
      "model-invalid",
      `${name} is not valid JSON (${error instanceof Error ? error.message : String(error)}); copy the model folder again.`,
      { cause: error },
    );
  }
  if (!isRecord(value)) {
    throw new GimbalError(
      "model-invalid",
      `${name} holds no JSON object; take it from the model folder.`,
    );
  }
  return value;
}

function readAddedToken(value: unknown, id: unknown): AddedToken | null {
  if (!isRecord(value) || typeof value.content !== "string" || value.content === "") return null;
  if (typeof id !== "number" || !Number.isInteger(id)) return null;
  return {
    id,
    content: value.content,
    special: value.special === true,
    lstrip: value.lstrip === true,
    rstrip: value.rstrip === true,
  };
}

function collectAddedTokens(tokenizerJson: JsonRecord, config: JsonRecord): AddedToken[] {
  const tokens = new Map<string, AddedToken>();
  const add = (token: AddedToken | null): void => {
    if (token !== null && !tokens.has(token.content)) tokens.set(token.content, token);
  };
  if (Array.isArray(tokenizerJson.added_tokens)) {
    for (const entry of tokenizerJson.added_tokens) add(readAddedToken(entry, entry?.id));
  }
  if (isRecord(config.added_tokens_decoder)) {
    for (const [id, entry] of Object.entries(config.added_tokens_decoder)) {
      add(readAddedToken(entry, Number(id)));
    }
  }
  return [...tokens.values()];
}

function collectNamedTokens(config: JsonRecord): Record<string, string> {
  const named: Record<string, string> = {};
  for (const [key, value] of Object.entries(config)) {
    if (!key.endsWith("_token")) continue;
    if (typeof value === "string") named[key] = value;
    else if (isRecord(value) && typeof value.content === "string") named[key] = value.content;
  }
  return named;
}

function usesByteLevel(decoder: unknown): boolean {
  if (!isRecord(decoder)) return false;
  if (decoder.type === "ByteLevel") return true;
  return (
    decoder.type === "Sequence" &&
    Array.isArray(decoder.decoders) &&
    decoder.decoders.some(usesByteLevel)
  );
}

/**
 * Loads a tokenizer from the texts of `tokenizer.json` and `tokenizer_config.json`.
 * @throws {GimbalError} `model-invalid` when a text is not what its name says or uses an unknown part.
 * @example
 * const tokenizer = loadTokenizer(tokenizerJsonText, tokenizerConfigText);
 * tokenizer.encode("hello"); // ids
 */
export function loadTokenizer(tokenizerJson: string, tokenizerConfigJson = "{}"): Tokenizer {
  return loadFullTokenizer(tokenizerJson, tokenizerConfigJson);
}

/** {@link loadTokenizer} with what the renderer needs. */
export function loadFullTokenizer(
  tokenizerJson: string,
  tokenizerConfigJson: string,
): LoadedTokenizer {
  const json = parseFile(tokenizerJson, "tokenizer.json");
  const config = parseFile(tokenizerConfigJson, "tokenizer_config.json");
  const addedTokens = new AddedTokenSet(collectAddedTokens(json, config));
  let library: LibraryTokenizer;
  try {
    library = new LibraryTokenizer({ ...json, added_tokens: [] }, config);
  } catch (error) {
    throw new GimbalError(
      "model-invalid",
      `tokenizer.json cannot be used (${error instanceof Error ? error.message.replaceAll("\n", " ") : String(error)}); expected a fast-tokenizer file as transformers writes it.`,
      { cause: error },
    );
  }
  return new HuggingFaceTokenizer(library, addedTokens, config, usesByteLevel(json.decoder));
}

class HuggingFaceTokenizer implements LoadedTokenizer {
  readonly vocabularySize: number;
  readonly addedTokens: AddedTokenSet;
  readonly namedTokens: Readonly<Record<string, string>>;
  private readonly library: LibraryTokenizer;
  private readonly byteLevel: boolean;
  private readonly addedById: ReadonlyMap<number, AddedToken>;
  private readonly bytes = new Map<number, Uint8Array>();

  constructor(
    library: LibraryTokenizer,
    addedTokens: AddedTokenSet,
    config: JsonRecord,
    byteLevel: boolean,
  ) {
    this.library = library;
    this.addedTokens = addedTokens;
    this.byteLevel = byteLevel;
    this.namedTokens = collectNamedTokens(config);
    this.addedById = new Map(addedTokens.tokens.map((token) => [token.id, token]));
    const ordinary = library.model?.vocab.length ?? 0;
    this.vocabularySize = addedTokens.tokens.reduce(
      (size, token) => Math.max(size, token.id + 1),
      ordinary,
    );
  }

  encode(text: string, options: { readonly allowSpecial?: boolean } = {}): number[] {
    if (options.allowSpecial !== true) return this.encodeOrdinary(text, 0);
    return this.addedTokens
      .split(text)
      .flatMap((piece, index) =>
        piece.kind === "token" ? [piece.token.id] : this.encodeOrdinary(piece.text, index),
      );
  }

  encodePieces(text: string): EncodedPiece[] {
    return this.addedTokens.split(text).map((piece, index) => {
      if (piece.kind === "token") {
        return { start: piece.start, text: piece.token.content, ids: [piece.token.id] };
      }
      const ids = this.encodeOrdinary(removeBreaks(piece.text), index);
      return { start: piece.start, text: piece.text, ids };
    });
  }

  private encodeOrdinary(text: string, sectionIndex: number): number[] {
    if (text === "") return [];
    const { normalizer, pre_tokenizer: preTokenizer, model } = this.library;
    if (model === null) return [];
    const normalized = normalizer === null ? text : normalizer(text);
    if (normalized === "") return [];
    const words =
      preTokenizer === null
        ? [normalized]
        : preTokenizer(normalized, { section_index: sectionIndex });
    const ids: number[] = [];
    for (const token of model(words)) {
      const id = model.tokens_to_ids.get(token) ?? model.unk_token_id;
      if (id !== undefined) ids.push(id);
    }
    return ids;
  }

  tokenToId(token: string): number | undefined {
    return this.addedTokens.get(token)?.id ?? this.library.token_to_id(token);
  }

  idToBytes(id: number): Uint8Array | undefined {
    if (!this.byteLevel) return undefined;
    const known = this.bytes.get(id);
    if (known !== undefined) return known;
    const bytes = this.computeBytes(id);
    this.bytes.set(id, bytes);
    return bytes;
  }

  private computeBytes(id: number): Uint8Array {
    const added = this.addedById.get(id);
    if (added !== undefined) return new TextEncoder().encode(added.content);
    const token = this.library.id_to_token(id);
    // Ids beyond the vocabulary (padded embedding rows) can be sampled by an untrained model; they have no text.
    if (token === undefined) return new Uint8Array(0);
    return byteLevelBytes(token) ?? new TextEncoder().encode(token);
  }

  decode(ids: readonly number[]): string {
    const decoder = this.createIncrementalDecoder();
    let text = "";
    for (const id of ids) text += decoder.push(id);
    return text + decoder.end();
  }

  createIncrementalDecoder(): { push(id: number): string; end(): string } {
    return this.byteLevel ? this.byteDecoder() : this.windowDecoder();
  }

  private byteDecoder(): { push(id: number): string; end(): string } {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return {
      push: (id) => decoder.decode(this.idToBytes(id), { stream: true }),
      end: () => decoder.decode(),
    };
  }

  /** For tokenizers that are not byte-level: decodes the ids since the last added token, emits what is settled. */
  private windowDecoder(): { push(id: number): string; end(): string } {
    let window: number[] = [];
    let emitted = "";
    const settle = (final: boolean): string => {
      if (window.length === 0) return "";
      const text = this.library.decode(window, { clean_up_tokenization_spaces: false });
      // A trailing replacement character may be half of a character still to come.
      const settled = final ? text : text.replace(/\uFFFD+$/, "");
      if (!settled.startsWith(emitted)) return "";
      const fresh = settled.slice(emitted.length);
      emitted = settled;
      if (window.length >= windowLimit && settled === text) {
        // Keeps the work per id constant: the last ids are context enough for what follows.
        window = window.slice(-windowContext);
        emitted = this.library.decode(window, { clean_up_tokenization_spaces: false });
      }
      return fresh;
    };
    const flush = (): string => {
      const fresh = settle(true);
      window = [];
      emitted = "";
      return fresh;
    };
    return {
      push: (id) => {
        const added = this.addedById.get(id);
        if (added !== undefined) return flush() + added.content;
        if (this.library.id_to_token(id) === undefined) return "";
        window.push(id);
        return settle(false);
      },
      end: flush,
    };
  }
}
