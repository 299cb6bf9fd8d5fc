/**
 * Draws names and numbers for one member.
 *
 * Law: a word or number is given out at most once per member, so that nothing is ambiguous by accident.
 */
import { GimbalError, type Random } from "@gimbal-rl/core";
import { deskWords } from "./words.js";

/** A source of distinct names and numbers. */
export interface Draw {
  /** A word not used before in this member. */
  word(): string;
  /** A number in [10, 99) not used before in this member, as text. */
  number(): string;
  /** Two decimal digits or a word. */
  value(): string;
  /** Uniform integer in [low, high]. */
  between(low: number, high: number): number;
  /** One of the items. @throws {GimbalError} `invalid-request` when there are none. */
  pick<T>(items: readonly T[]): T;
  /** The items in random order. */
  shuffle<T>(items: readonly T[]): T[];
}

/** Starts the draws of one member. */
export function createDraw(random: Random): Draw {
  const used = new Set<string>();
  const fresh = (make: () => string): string => {
    for (;;) {
      const text = make();
      if (used.has(text)) continue;
      used.add(text);
      return text;
    }
  };
  const pick = <T>(items: readonly T[]): T => {
    const item = items[random.integer(items.length)];
    if (item === undefined) {
      throw new GimbalError("invalid-request", "Cannot pick from an empty list; pass an item.");
    }
    return item;
  };
  const word = (): string => fresh(() => pick(deskWords));
  const number = (): string => fresh(() => String(10 + random.integer(89)));
  return {
    word,
    number,
    value: () => (random.integer(2) === 0 ? word() : number()),
    between: (low, high) => low + random.integer(high - low + 1),
    pick,
    shuffle: (items) => {
      const left = [...items];
      const out: (typeof left)[number][] = [];
      while (left.length > 0) out.push(...left.splice(random.integer(left.length), 1));
      return out;
    },
  };
}
