/**
 * One step of the model: which rows of the trie are run together, and whose logits are wanted.
 *
 * Laws. A row of the trie appears at most once in a step. Rows planned in a step count as computed for rows planned
 * later in it, because every layer stores the keys and values of all rows before any row attends.
 */
import type { AttentionPlan } from "@gimbal-rl/compute";
import type { Cursor, Segment } from "./segment-trie.js";

/** Consecutive rows of one segment. */
interface Chunk {
  readonly segment: Segment;
  /** First token of the segment in the chunk. */
  readonly from: number;
  readonly count: number;
  /** Row of the step that holds it. */
  readonly row: number;
}

/** What `DecodablePolicy.decode` takes, apart from the caches. R rows, L logit rows. */
export interface StepInput {
  readonly tokenIds: Int32Array;
  readonly positions: Int32Array;
  readonly slots: Int32Array;
  readonly plan: AttentionPlan;
  readonly logitRows: Int32Array;
}

/** Collects the rows of one step. */
export class StepBuilder {
  readonly #chunks: Chunk[] = [];
  readonly #chunksOf: Map<Segment, Chunk[]> = new Map();
  readonly #logitRows: number[] = [];
  readonly #logitOf: Map<number, number> = new Map();
  #rows = 0;
  #recomputedRows = 0;

  /** Rows planned. */
  get rows(): number {
    return this.#rows;
  }

  /** Rows run again only because their logits were wanted; their keys and values were cached. */
  get recomputedRows(): number {
    return this.#recomputedRows;
  }

  /** Plans up to `limit` rows of the cursor's path that are not computed, marks them so, returns how many. */
  compute(cursor: Cursor, limit: number): number {
    const missing: { segment: Segment; until: number }[] = [];
    let segment: Segment | null = cursor.segment;
    let until = cursor.offset;
    while (segment !== null && segment.computed < until) {
      missing.push({ segment, until });
      segment = segment.parent;
      until = segment?.tokens.length ?? 0;
    }
    let planned = 0;
    for (let part = missing.pop(); part !== undefined && planned < limit; part = missing.pop()) {
      const from = part.segment.computed;
      const count = Math.min(part.until - from, limit - planned);
      this.#add(part.segment, from, count);
      part.segment.computed += count;
      planned += count;
    }
    return planned;
  }

  /**
   * Asks for the logits of the last row of a complete path; returns their index among the step's logits. The row is
   * run again, into its own slot and with the same result, when an earlier step computed it.
   */
  logits(cursor: Cursor): number {
    const { segment } = cursor;
    const at = cursor.offset - 1;
    let row = this.#rowOf(segment, at);
    if (row === undefined) {
      row = this.#add(segment, at, 1);
      this.#recomputedRows += 1;
    }
    let index = this.#logitOf.get(row);
    if (index === undefined) {
      index = this.#logitRows.length;
      this.#logitRows.push(row);
      this.#logitOf.set(row, index);
    }
    return index;
  }

  /** The arrays of the step. */
  build(): StepInput {
    const tokenIds = new Int32Array(this.#rows);
    const positions = new Int32Array(this.#rows);
    const slots = new Int32Array(this.#rows);
    const count = this.#chunks.length;
    const plan = {
      rowStarts: new Int32Array(count),
      rowCounts: new Int32Array(count),
      selfSlots: new Int32Array(count),
      spanOffsets: new Int32Array(count + 1),
    };
    const spanSlots: number[] = [];
    const spanLengths: number[] = [];
    this.#chunks.forEach(({ segment, from, count: rows, row }, index) => {
      for (let i = 0; i < rows; i += 1) {
        tokenIds[row + i] = segment.tokens[from + i];
        positions[row + i] = segment.position + from + i;
        slots[row + i] = segment.slot + from + i;
      }
      plan.rowStarts[index] = row;
      plan.rowCounts[index] = rows;
      plan.selfSlots[index] = segment.slot + from;
      pushSpans(segment, from, spanSlots, spanLengths);
      plan.spanOffsets[index + 1] = spanSlots.length;
    });
    return {
      tokenIds,
      positions,
      slots,
      plan: {
        ...plan,
        spanSlots: Int32Array.from(spanSlots),
        spanLengths: Int32Array.from(spanLengths),
      },
      logitRows: Int32Array.from(this.#logitRows),
    };
  }

  #add(segment: Segment, from: number, count: number): number {
    const chunk = { segment, from, count, row: this.#rows };
    this.#chunks.push(chunk);
    const chunks = this.#chunksOf.get(segment);
    if (chunks === undefined) this.#chunksOf.set(segment, [chunk]);
    else chunks.push(chunk);
    this.#rows += count;
    return chunk.row;
  }

  #rowOf(segment: Segment, at: number): number | undefined {
    const chunk = this.#chunksOf
      .get(segment)
      ?.find(({ from, count }) => from <= at && at < from + count);
    return chunk === undefined ? undefined : chunk.row + at - chunk.from;
  }
}

/** Appends the spans that the chunk's rows see before themselves, in order of position, neighbours joined. */
function pushSpans(segment: Segment, from: number, slots: number[], lengths: number[]): void {
  const path: Segment[] = [];
  for (let node = segment.parent; node !== null; node = node.parent) {
    if (node.tokens.length > 0) path.push(node);
  }
  const first = slots.length;
  const push = (slot: number, length: number): void => {
    const last = slots.length - 1;
    if (last >= first && slots[last] + lengths[last] === slot) lengths[last] += length;
    else {
      slots.push(slot);
      lengths.push(length);
    }
  };
  for (let node = path.pop(); node !== undefined; node = path.pop()) {
    push(node.slot, node.tokens.length);
  }
  if (from > 0) push(segment.slot, from);
}
