/**
 * AttentionPlans: from a token trie, and for a choice of a plan's rows.
 *
 * Law: what a row attends to is its path to the root and nothing else; how rows are cut into segments leaves no trace.
 */
import { GimbalError, type TokenTrie } from "@gimbal-rl/core";
import type { AttentionPlan } from "../backend.js";

interface Span {
  readonly slot: number;
  readonly length: number;
}

function appendSpan(spans: readonly Span[], span: Span): readonly Span[] {
  if (span.length === 0) return spans;
  const last = spans.at(-1);
  return last !== undefined && last.slot + last.length === span.slot
    ? [...spans.slice(0, -1), { slot: last.slot, length: last.length + span.length }]
    : [...spans, span];
}

class PlanBuilder {
  readonly #rowStarts: number[] = [];
  readonly #rowCounts: number[] = [];
  readonly #selfSlots: number[] = [];
  readonly #spanOffsets: number[] = [0];
  readonly #spanSlots: number[] = [];
  readonly #spanLengths: number[] = [];

  add(rowStart: number, rowCount: number, selfSlot: number, spans: readonly Span[]): void {
    this.#rowStarts.push(rowStart);
    this.#rowCounts.push(rowCount);
    this.#selfSlots.push(selfSlot);
    for (const span of spans) {
      this.#spanSlots.push(span.slot);
      this.#spanLengths.push(span.length);
    }
    this.#spanOffsets.push(this.#spanSlots.length);
  }

  build(): AttentionPlan {
    return {
      rowStarts: Int32Array.from(this.#rowStarts),
      rowCounts: Int32Array.from(this.#rowCounts),
      selfSlots: Int32Array.from(this.#selfSlots),
      spanOffsets: Int32Array.from(this.#spanOffsets),
      spanSlots: Int32Array.from(this.#spanSlots),
      spanLengths: Int32Array.from(this.#spanLengths),
    };
  }
}

function malformed(message: string): GimbalError {
  return new GimbalError("shape-mismatch", `Malformed token trie: ${message}`, {
    boundary: "compute",
  });
}

/**
 * The plan of a whole trie; cache slots are rows.
 * @throws {GimbalError} `shape-mismatch` when rows, segments, parents or positions disagree.
 */
export function trieToPlan(trie: TokenTrie): AttentionPlan {
  const rows = trie.tokenIds.length;
  const segments = trie.segmentStarts.length;
  if (trie.positions.length !== rows || trie.parentRows.length !== rows)
    throw malformed(`found ${rows} ids and ${trie.positions.length} positions; expected equal.`);
  if (trie.segmentParents.length !== segments)
    throw malformed(`found ${segments} starts and ${trie.segmentParents.length} parents.`);
  if (rows > 0 && trie.segmentStarts[0] !== 0) throw malformed("the first segment starts late.");
  const builder = new PlanBuilder();
  /** Spans of the path that ends with each segment. */
  const paths: (readonly Span[])[] = [];
  const ends = [...trie.segmentStarts.subarray(1), rows];
  for (let s = 0; s < segments; s += 1) {
    const [start, end, parent] = [trie.segmentStarts[s], ends[s], trie.segmentParents[s]];
    if (end <= start || parent >= s)
      throw malformed(`segment ${s} (rows ${start} to ${end}, parent ${parent}) is out of order.`);
    const spans = parent < 0 ? [] : paths[parent];
    const depth = parent < 0 ? 0 : trie.positions[ends[parent] - 1] + 1;
    for (let row = start; row < end; row += 1) {
      const above = row > start ? row - 1 : parent < 0 ? -1 : ends[parent] - 1;
      if (trie.positions[row] !== depth + row - start || trie.parentRows[row] !== above)
        throw malformed(`row ${row} does not lie below row ${above} at the next position.`);
    }
    builder.add(start, end - start, start, spans);
    paths.push(appendSpan(spans, { slot: start, length: end - start }));
  }
  return builder.build();
}

/**
 * The plan for some rows of a plan, in the order given: output row i is `rows[i]`. Neighbours in a segment stay
 * together; repeated and unordered rows are allowed.
 * @throws {GimbalError} `shape-mismatch` when a row is not in the plan.
 */
export function selectPlanRows(
  plan: AttentionPlan,
  rows: Int32Array,
  total: number,
): AttentionPlan {
  const segmentOfRow = new Int32Array(total).fill(-1);
  for (let s = 0; s < plan.rowStarts.length; s += 1)
    segmentOfRow.fill(s, plan.rowStarts[s], plan.rowStarts[s] + plan.rowCounts[s]);
  const builder = new PlanBuilder();
  for (let i = 0; i < rows.length; ) {
    const segment = rows[i] >= 0 && rows[i] < total ? segmentOfRow[rows[i]] : -1;
    if (segment < 0) {
      throw new GimbalError("shape-mismatch", `Row ${rows[i]} is not in the attention plan.`, {
        boundary: "compute",
      });
    }
    let count = 1;
    while (
      i + count < rows.length &&
      rows[i + count] === rows[i] + count &&
      segmentOfRow[rows[i + count]] === segment
    )
      count += 1;
    let spans: readonly Span[] = [];
    for (let a = plan.spanOffsets[segment]; a < plan.spanOffsets[segment + 1]; a += 1)
      spans = appendSpan(spans, { slot: plan.spanSlots[a], length: plan.spanLengths[a] });
    const before = rows[i] - plan.rowStarts[segment];
    const self = plan.selfSlots[segment];
    builder.add(i, count, self + before, appendSpan(spans, { slot: self, length: before }));
    i += count;
  }
  return builder.build();
}
