/**
 * Invisible marks inside rendered text: where a message starts and ends, and where text of a message must not become
 * an added token.
 *
 * Law: `splitMarks` gives back exactly the text that the same template renders without marks, plus where each message
 * lies in it; escaping then removing breaks is the identity for every string.
 */

/** Opens a mark: `{open}{payload}{close}`. Unicode noncharacters, which no text interchange should hold. */
const open = "\uFDD0";
const close = "\uFDD1";
/** Before a mark character: that character literally. Before any other: a break, itself nothing. */
export const breakMark = "\uFDD2";

const markCharacters = /[\uFDD0-\uFDD2]/g;
const anyMark = /\uFDD2([\uFDD0-\uFDD2]?)|\uFDD0([^\uFDD1]*)\uFDD1/g;

/** Protects mark characters that are part of a message. */
export function escapeMarks(text: string): string {
  return text.replace(markCharacters, (character) => breakMark + character);
}

/** Removes breaks and gives literal mark characters back. */
export function removeBreaks(text: string): string {
  return text.includes(breakMark) ? text.replace(/\uFDD2([\uFDD0-\uFDD2]?)/g, "$1") : text;
}

/** The mark that says: what follows belongs to `owner` (a message index, `tool`, or nothing). */
export function ownerMark(owner: string): string {
  return open + owner + close;
}

/** A run of rendered text (breaks still inside) and whose it is. */
export interface MarkedRun {
  readonly start: number;
  readonly owner: string;
}

/** Takes the owner marks out of rendered text. Breaks stay. Offsets are into the returned text. */
export function splitMarks(marked: string): { readonly text: string; readonly runs: MarkedRun[] } {
  const runs: MarkedRun[] = [{ start: 0, owner: "" }];
  let text = "";
  let from = 0;
  for (const match of marked.matchAll(anyMark)) {
    const owner = match[2];
    if (owner === undefined) continue;
    text += marked.slice(from, match.index);
    from = match.index + match[0].length;
    runs.push({ start: text.length, owner });
  }
  text += marked.slice(from);
  return { text, runs };
}
