/**
 * Seeded randomness. Same seed, same numbers, on every platform.
 */

/** A stream of uniform numbers. */
export interface Random {
  /** Uniform in [0, 1), 32 random bits. */
  next(): number;
  /** Uniform integer in [0, bound). */
  integer(bound: number): number;
}

/**
 * Mixes strings and whole numbers into a 32-bit unsigned seed; order matters, and ("ab","c") differs from ("a","bc").
 * Single numbers count with 64 bits, the members of a list with 32.
 * @throws {RangeError} for a number that is not a safe integer: its fraction would be lost, and two seeds fall together.
 */
export function hashToSeed(...parts: readonly (string | number | readonly number[])[]): number {
  let hash = 0x811c9dc5;
  const mix = (value: number): void => {
    hash = Math.imul(hash ^ (value & 0xff), 0x01000193);
    hash = Math.imul(hash ^ ((value >>> 8) & 0xff), 0x01000193);
    hash = Math.imul(hash ^ ((value >>> 16) & 0xff), 0x01000193);
    hash = Math.imul(hash ^ (value >>> 24), 0x01000193);
  };
  const requireWhole = (value: number): void => {
    if (Number.isSafeInteger(value)) return;
    throw new RangeError(`A seed is made of strings and whole numbers; found ${value}.`);
  };
  for (const part of parts) {
    if (typeof part === "number") {
      requireWhole(part);
      mix(1);
      mix(part >>> 0);
      mix(Math.floor(part / 0x1_0000_0000) >>> 0);
    } else if (typeof part === "string") {
      mix(2);
      mix(part.length);
      for (let i = 0; i < part.length; i += 1) mix(part.charCodeAt(i));
    } else {
      mix(3);
      mix(part.length);
      for (const value of part) {
        requireWhole(value);
        mix(value);
      }
    }
  }
  // Final avalanche (murmur3), because FNV alone leaves neighbouring inputs correlated.
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  hash = Math.imul(hash, 0xc2b2ae35);
  hash ^= hash >>> 16;
  return hash >>> 0;
}

/** A seeded generator (sfc32, Chris Doty-Humphrey), warmed up so that near seeds diverge. */
export function createRandom(seed: number): Random {
  let a = seed >>> 0;
  let b = 0x9e3779b9;
  let c = 0x243f6a88;
  let counter = 1;
  const bits = (): number => {
    const result = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + result;
    c |= 0;
    return result >>> 0;
  };
  for (let i = 0; i < 15; i += 1) bits();
  const next = (): number => bits() / 0x1_0000_0000;
  return { next, integer: (bound) => Math.floor(next() * bound) };
}

/** The items in an order of equal chance (Fisher-Yates); takes `items.length - 1` draws and leaves `items` as they are. */
export function shuffled<T>(items: readonly T[], random: Random): T[] {
  const order = [...items];
  for (let i = order.length - 1; i > 0; i -= 1) {
    const j = random.integer(i + 1);
    const moved = order[i] as T;
    order[i] = order[j] as T;
    order[j] = moved;
  }
  return order;
}
