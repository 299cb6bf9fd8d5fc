/**
 * A text spelled with pairwise different token ids, so that a model which knows only the last token can write it.
 */
import type { Tokenizer } from "@gimbal-rl/renderers";

/** Ids by the text they stand for; special and non-ASCII ones are left out. */
function idsByText(tokenizer: Tokenizer): Map<string, number> {
  const ids = new Map<string, number>();
  for (let id = 0; id < tokenizer.vocabularySize; id += 1) {
    const text = tokenizer.decode([id]);
    if (/^[\x20-\x7e\n]+$/.test(text) && !text.startsWith("<")) ids.set(text, id);
  }
  return ids;
}

/**
 * Spells `text` with ids that are not in `taken` and do not repeat; adds them to `taken`.
 * @throws {Error} when there is no such spelling.
 */
export function spellOnce(tokenizer: Tokenizer, text: string, taken: Set<number>): number[] {
  const known = idsByText(tokenizer);
  const longest = Math.max(...[...known.keys()].map((piece) => piece.length));
  const path: number[] = [];
  const walk = (at: number): boolean => {
    if (at === text.length) return true;
    for (let length = Math.min(longest, text.length - at); length > 0; length -= 1) {
      const id = known.get(text.slice(at, at + length));
      if (id === undefined || taken.has(id)) continue;
      taken.add(id);
      path.push(id);
      if (walk(at + length)) return true;
      taken.delete(id);
      path.pop();
    }
    return false;
  };
  if (!walk(0)) throw new Error(`No spelling of ${JSON.stringify(text)} without a repeated token.`);
  return path;
}
