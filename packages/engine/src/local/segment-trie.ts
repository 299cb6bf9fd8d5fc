/**
 * The key/value cache as a trie of token segments: a prefix shared by several calls is stored and computed once.
 *
 * Laws. A segment's slots are consecutive. Every cursor's path (root to cursor) stays stored until it is closed.
 * A segment with computed rows hangs below segments that are computed completely. What no cursor needs is kept as
 * cache until slots run out; then unreferenced leaves go, least recently used first. The trie belongs to one set of
 * weights: `clear` it when they change.
 */
import { SlotAllocator } from "./slot-allocator.js";

/** Shortest run worth evicting for, so that segments do not shatter into single slots. */
const runFloor = 16;

/** A run of tokens whose keys and values lie in consecutive slots. */
export interface Segment {
  /** Ids in order of position. */
  tokens: number[];
  /** Slot of the first token. */
  readonly slot: number;
  /** Slots reserved from `slot` on; at least the number of tokens. */
  capacity: number;
  /** Tokens, from the front, whose keys and values are in the cache. */
  computed: number;
  /** Position of the first token. */
  readonly position: number;
  parent: Segment | null;
  children: Map<number, Segment>;
  cursors: Set<Cursor>;
  lastUsed: number;
}

/** A place in the trie: the first `offset` tokens of `segment` and everything above it. */
export interface Cursor {
  segment: Segment;
  offset: number;
}

/** A trie of token segments over a fixed number of cache slots. */
export class SegmentTrie {
  readonly #allocator: SlotAllocator;
  #root: Segment;
  #segments: Set<Segment> = new Set();
  #clock = 0;
  #evictedSlots = 0;

  /** @param slots - Slots of the cache that this trie owns. */
  constructor(slots: number) {
    this.#allocator = new SlotAllocator(slots);
    this.#root = createSegment(null, [], -1, 0);
  }

  /** Slots that hold or are reserved for tokens. */
  get usedSlots(): number {
    return this.#allocator.slots - this.#allocator.freeSlots;
  }

  /** Slots freed by eviction so far. */
  get evictedSlots(): number {
    return this.#evictedSlots;
  }

  /** Number of segments stored. */
  get segmentCount(): number {
    return this.#segments.size;
  }

  /** A cursor at the root. Close it when it is no longer needed. */
  open(): Cursor {
    const cursor: Cursor = { segment: this.#root, offset: 0 };
    this.#root.cursors.add(cursor);
    return cursor;
  }

  /** Moves the cursor along `ids` as far as they are stored; returns how many. Never allocates. */
  follow(cursor: Cursor, ids: readonly number[], from = 0): number {
    let index = from;
    let { segment, offset } = cursor;
    while (index < ids.length) {
      if (offset < segment.tokens.length) {
        if (segment.tokens[offset] !== ids[index]) break;
        offset += 1;
        index += 1;
      } else {
        const child = segment.children.get(ids[index]);
        if (child === undefined) break;
        this.#touch(segment);
        segment = child;
        offset = 0;
      }
    }
    this.#move(cursor, segment, offset);
    return index - from;
  }

  /**
   * Moves the cursor along `ids`, storing what is new. Returns how many ids it moved, fewer only when no slot can be
   * had: everything else is held by cursors.
   * @param reserve - Slots to hold for tokens expected to follow these.
   */
  advance(cursor: Cursor, ids: readonly number[], from = 0, reserve = 0): number {
    let index = from + this.follow(cursor, ids, from);
    while (index < ids.length) {
      const added = this.#grow(cursor, ids, index, ids.length - index + reserve);
      if (added === 0) break;
      index += added;
    }
    return index - from;
  }

  /** Gives the path up. Tokens that no other cursor needs stay as cache when computed and are dropped otherwise. */
  close(cursor: Cursor): void {
    let segment: Segment | null = cursor.segment;
    segment.cursors.delete(cursor);
    while (segment !== null && segment !== this.#root) {
      if (segment.children.size > 0 || segment.cursors.size > 0) return;
      const parent: Segment | null = segment.parent;
      this.#trim(segment, segment.computed);
      if (segment.tokens.length > 0) return;
      this.#remove(segment);
      segment = parent;
    }
  }

  /** Slots that are free or would be after evicting everything that no cursor needs. */
  availableSlots(): number {
    const needed = new Set<Segment>();
    let held = 0;
    for (const start of this.#segments) {
      if (start.cursors.size === 0) continue;
      let segment: Segment | null = start;
      while (segment !== null && segment !== this.#root && !needed.has(segment)) {
        needed.add(segment);
        held += segment.capacity;
        segment = segment.parent;
      }
    }
    return this.#allocator.slots - held;
  }

  /** Forgets everything. @param cursors - Cursors that are still open; they return to the root. */
  clear(cursors: Iterable<Cursor> = []): void {
    for (const segment of this.#segments) this.#allocator.release(segment.slot, segment.capacity);
    this.#segments = new Set();
    this.#root = createSegment(null, [], -1, 0);
    for (const cursor of cursors) {
      cursor.segment = this.#root;
      cursor.offset = 0;
      this.#root.cursors.add(cursor);
    }
  }

  /** Stores ids[index ..] behind the cursor, which stands where they diverge from what is stored. */
  #grow(cursor: Cursor, ids: readonly number[], index: number, wanted: number): number {
    if (cursor.offset < cursor.segment.tokens.length) this.#split(cursor.segment, cursor.offset);
    const segment = cursor.segment;
    const isTail = segment !== this.#root && segment.children.size === 0;
    if (isTail) {
      if (segment.capacity === segment.tokens.length) {
        segment.capacity += this.#allocator.extend(segment.slot + segment.capacity, wanted);
      }
      const room = Math.min(segment.capacity - segment.tokens.length, ids.length - index);
      if (room > 0) return this.#append(cursor, segment, ids, index, room);
    }
    this.#makeRoom(Math.min(wanted, runFloor));
    // Making room may have freed the very slots behind this segment; a run that starts there is taken next time.
    const run = this.#allocator.allocate(wanted);
    if (run === undefined) return 0;
    this.#trim(segment, segment.tokens.length);
    const child = createSegment(segment, [], run.start, segment.position + segment.tokens.length);
    child.capacity = run.length;
    segment.children.set(ids[index], child);
    this.#segments.add(child);
    return this.#append(cursor, child, ids, index, Math.min(run.length, ids.length - index));
  }

  #append(
    cursor: Cursor,
    segment: Segment,
    ids: readonly number[],
    index: number,
    count: number,
  ): number {
    for (let i = 0; i < count; i += 1) segment.tokens.push(ids[index + i]);
    this.#move(cursor, segment, segment.tokens.length);
    return count;
  }

  /** Evicts until a run of `wanted` slots is free or nothing more can go. */
  #makeRoom(wanted: number): void {
    while (this.#allocator.longestRun < wanted) {
      let oldest: Segment | undefined;
      for (const segment of this.#segments) {
        if (segment.children.size > 0 || segment.cursors.size > 0) continue;
        if (oldest === undefined || segment.lastUsed < oldest.lastUsed) oldest = segment;
      }
      if (oldest === undefined) return;
      this.#evictedSlots += oldest.tokens.length;
      this.#remove(oldest);
    }
  }

  /** Cuts a segment in two before token `at`; the upper part keeps its identity. */
  #split(segment: Segment, at: number): void {
    const lower = createSegment(
      segment,
      segment.tokens.slice(at),
      segment.slot + at,
      segment.position + at,
    );
    lower.capacity = segment.capacity - at;
    lower.computed = Math.max(0, segment.computed - at);
    lower.lastUsed = segment.lastUsed;
    lower.children = segment.children;
    for (const child of lower.children.values()) child.parent = lower;
    segment.tokens = segment.tokens.slice(0, at);
    segment.capacity = at;
    segment.computed = Math.min(segment.computed, at);
    segment.children = new Map([[lower.tokens[0], lower]]);
    for (const cursor of segment.cursors) {
      if (cursor.offset > at) this.#move(cursor, lower, cursor.offset - at);
    }
    this.#segments.add(lower);
  }

  /** Keeps the first `length` tokens of a leaf and gives the other slots back. */
  #trim(segment: Segment, length: number): void {
    if (segment === this.#root) return;
    if (segment.tokens.length > length) segment.tokens.length = length;
    this.#allocator.release(segment.slot + length, segment.capacity - length);
    segment.capacity = length;
  }

  #remove(segment: Segment): void {
    this.#allocator.release(segment.slot, segment.capacity);
    this.#segments.delete(segment);
    const parent = segment.parent;
    if (parent === null) return;
    for (const [token, child] of parent.children) {
      if (child === segment) parent.children.delete(token);
    }
  }

  #move(cursor: Cursor, segment: Segment, offset: number): void {
    if (cursor.segment !== segment) {
      cursor.segment.cursors.delete(cursor);
      segment.cursors.add(cursor);
      cursor.segment = segment;
    }
    cursor.offset = offset;
    this.#touch(segment);
  }

  #touch(segment: Segment): void {
    this.#clock += 1;
    segment.lastUsed = this.#clock;
  }
}

/** Position behind the cursor = number of tokens on its path. */
export function cursorDepth(cursor: Cursor): number {
  return cursor.segment.position + cursor.offset;
}

/** Whether every row of the cursor's path is computed. A computed row implies computed rows above it. */
export function isComputed(cursor: Cursor): boolean {
  return cursor.segment.computed >= cursor.offset;
}

function createSegment(
  parent: Segment | null,
  tokens: number[],
  slot: number,
  position: number,
): Segment {
  return {
    tokens,
    slot,
    capacity: tokens.length,
    computed: 0,
    position,
    parent,
    children: new Map(),
    cursors: new Set(),
    lastUsed: 0,
  };
}
