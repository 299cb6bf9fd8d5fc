/**
 * A byte-level tokenizer small enough to read: ids 0-255 are bytes, then a few special tokens in Qwen's spelling.
 *
 * Law: decode(encode(text)) equals text. It satisfies the `Tokenizer` contract of `@gimbal-rl/renderers`.
 */

/** Special tokens; the first has id 256. */
export const testSpecialTokens: readonly string[] = [
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<think>",
  "</think>",
  "<|endoftext|>",
];

/** Bytes as ids. */
export interface TestTokenizer {
  readonly vocabularySize: number;
  encode(text: string, options?: { readonly allowSpecial?: boolean }): number[];
  decode(ids: readonly number[]): string;
  tokenToId(token: string): number | undefined;
  createIncrementalDecoder(): { push(id: number): string; end(): string };
}

/** Makes the byte tokenizer. Special strings become their ids unless `allowSpecial` is false or absent. */
export function createTestTokenizer(): TestTokenizer {
  const specialIds = new Map(testSpecialTokens.map((token, i) => [token, 256 + i]));
  const splitter = new RegExp(
    `(${testSpecialTokens.map((token) => token.replaceAll(/[|\\/]/g, "\\$&")).join("|")})`,
  );
  const bytesOf = (text: string): number[] => [...new TextEncoder().encode(text)];
  const encode = (text: string, options?: { readonly allowSpecial?: boolean }): number[] => {
    if (options?.allowSpecial !== true) return bytesOf(text);
    return text.split(splitter).flatMap((piece) => {
      const special = specialIds.get(piece);
      return special === undefined ? bytesOf(piece) : [special];
    });
  };
  const createIncrementalDecoder = (): { push(id: number): string; end(): string } => {
    let decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return {
      push: (id) => {
        if (id < 256) return decoder.decode(new Uint8Array([id]), { stream: true });
        const rest = decoder.decode();
        decoder = new TextDecoder("utf-8", { ignoreBOM: true });
        return rest + (testSpecialTokens[id - 256] ?? "");
      },
      end: () => decoder.decode(),
    };
  };
  return {
    vocabularySize: 256 + testSpecialTokens.length,
    encode,
    decode: (ids) => {
      const decoder = createIncrementalDecoder();
      return ids.map((id) => decoder.push(id)).join("") + decoder.end();
    },
    tokenToId: (token) => {
      const special = specialIds.get(token);
      if (special !== undefined) return special;
      const bytes = bytesOf(token);
      return bytes.length === 1 ? bytes[0] : undefined;
    },
    createIncrementalDecoder,
  };
}
