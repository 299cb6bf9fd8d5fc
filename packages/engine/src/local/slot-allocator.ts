/**
 * Free slots of a key/value cache, as runs of consecutive slots.
 *
 * Law: a slot is either in exactly one free run or handed out; neighbouring free runs are always merged.
 */

/** Consecutive slots `start .. start + length`. */
export interface SlotRun {
  readonly start: number;
  readonly length: number;
}

/** Hands out runs of slots from a fixed budget. */
export class SlotAllocator {
  readonly slots: number;
  #free: { start: number; length: number }[];
  #freeSlots: number;

  /** @param slots - Budget; slots are numbered from 0. */
  constructor(slots: number) {
    this.slots = slots;
    this.#free = slots > 0 ? [{ start: 0, length: slots }] : [];
    this.#freeSlots = slots;
  }

  /** Slots not handed out. */
  get freeSlots(): number {
    return this.#freeSlots;
  }

  /** Length of the longest free run. */
  get longestRun(): number {
    let longest = 0;
    for (const run of this.#free) if (run.length > longest) longest = run.length;
    return longest;
  }

  /** Takes the smallest free run that holds `wanted` slots, else the longest one; undefined when none is free. */
  allocate(wanted: number): SlotRun | undefined {
    let best = -1;
    for (let i = 0; i < this.#free.length; i += 1) {
      const length = this.#free[i].length;
      if (best < 0) best = i;
      else if (length >= wanted) {
        if (this.#free[best].length < wanted || length < this.#free[best].length) best = i;
      } else if (length > this.#free[best].length) best = i;
    }
    if (best < 0) return undefined;
    return this.#takeFront(best, wanted);
  }

  /** Takes up to `wanted` slots that begin exactly at `start`; returns how many (0 when `start` is taken). */
  extend(start: number, wanted: number): number {
    const index = this.#lowerBound(start);
    const run = this.#free[index];
    if (run === undefined || run.start !== start) return 0;
    return this.#takeFront(index, wanted).length;
  }

  /** Gives slots back. */
  release(start: number, length: number): void {
    if (length <= 0) return;
    const index = this.#lowerBound(start);
    const before = this.#free[index - 1];
    const after = this.#free[index];
    this.#freeSlots += length;
    const joinsBefore = before !== undefined && before.start + before.length === start;
    const joinsAfter = after !== undefined && start + length === after.start;
    if (joinsBefore && joinsAfter) {
      before.length += length + after.length;
      this.#free.splice(index, 1);
    } else if (joinsBefore) before.length += length;
    else if (joinsAfter) {
      after.start = start;
      after.length += length;
    } else this.#free.splice(index, 0, { start, length });
  }

  #takeFront(index: number, wanted: number): SlotRun {
    const run = this.#free[index];
    const length = Math.min(wanted, run.length);
    const start = run.start;
    if (length === run.length) this.#free.splice(index, 1);
    else {
      run.start += length;
      run.length -= length;
    }
    this.#freeSlots -= length;
    return { start, length };
  }

  /** Index of the first free run whose start is at or after `start`. */
  #lowerBound(start: number): number {
    let low = 0;
    let high = this.#free.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#free[middle].start < start) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
