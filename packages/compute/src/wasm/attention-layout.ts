/**
 * Turns an AttentionPlan into the tables that the attention kernels read, after checking it against its cache.
 *
 * Law: the tables choose which rows are computed together; they never change what a row sees.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { AttentionPlan, AttentionShape } from "../backend.js";

/** Query rows x heads that a kernel unit computes together. */
const UNIT_QUERIES = 8;
/** Rows whose probabilities a backward panel's part holds at one stride. */
const PART_ROWS = 64;
/** Floats of probabilities per head and panel; p and its gradient of all heads stay in the last-level cache. */
const PANEL_FLOATS = 2 ** 20;

/** Rows computed together, all of one segment. */
export interface RowBlocks {
  /** [blocks, fields]: segment, first row in the segment, rows, then what the kernel adds. */
  readonly table: Int32Array;
  readonly count: number;
}

/** A run of rows whose backward fits one panel. */
export interface Panel {
  readonly parts: RowBlocks;
  readonly blocks: RowBlocks;
  readonly rows: number;
  /** Floats of probabilities per key/value head. */
  readonly floats: number;
  /** Floats of work space per thread. */
  readonly firstSlotBlock: number;
  readonly slotBlocks: number;
  /** Multiply-adds per head width: sum of rows x keys x group. */
  readonly pairs: number;
}

/** Rounds up to an odd number of cache lines, so that equal columns of many rows do not share a cache set. */
export function rowStrideFor(length: number): number {
  const lines = Math.ceil(length / 16) + 1;
  return (lines % 2 === 0 ? lines + 1 : lines) * 16;
}

function refuse(text: string): never {
  throw new GimbalError("shape-mismatch", `attention: ${text}.`, { boundary: "compute" });
}

/**
 * Checks a plan and sums up its spans.
 * @returns [S] slots before each segment's own, and the rows that the plan covers.
 * @throws {GimbalError} `shape-mismatch` when a slot or row lies outside.
 */
export function checkPlan(
  plan: AttentionPlan,
  slots: number,
  rows: number,
): { readonly prefixes: Int32Array; readonly covered: number } {
  const segments = plan.rowStarts.length;
  if (
    plan.rowCounts.length !== segments ||
    plan.selfSlots.length !== segments ||
    plan.spanOffsets.length !== segments + 1 ||
    plan.spanSlots.length !== plan.spanLengths.length
  ) {
    refuse("the arrays of the plan have different lengths");
  }
  const prefixes = new Int32Array(segments);
  let covered = 0;
  for (let s = 0; s < segments; s += 1) {
    const count = plan.rowCounts[s];
    const row = plan.rowStarts[s];
    const self = plan.selfSlots[s];
    if (count < 0 || row < 0 || row + count > rows) {
      refuse(`segment ${s} holds rows ${row} to ${row + count - 1}, expected 0 to ${rows - 1}`);
    }
    if (self < 0 || self + count > slots) {
      refuse(`segment ${s} holds slots ${self} to ${self + count - 1}, expected 0 to ${slots - 1}`);
    }
    const first = plan.spanOffsets[s];
    const last = plan.spanOffsets[s + 1];
    if (first < 0 || last < first || last > plan.spanSlots.length) {
      refuse(`segment ${s} lists spans ${first} to ${last - 1} of ${plan.spanSlots.length}`);
    }
    for (let i = first; i < last; i += 1) {
      const slot = plan.spanSlots[i];
      const length = plan.spanLengths[i];
      if (slot < 0 || length < 0 || slot + length > slots) {
        refuse(`span ${i} holds slots ${slot} to ${slot + length - 1}, expected 0 to ${slots - 1}`);
      }
      prefixes[s] += length;
    }
    covered += count;
  }
  return { prefixes, covered };
}

/** Rows of a unit: the heads of a group share keys, so a larger group takes fewer rows. */
export function unitRows(shape: AttentionShape): number {
  return Math.max(1, Math.floor(UNIT_QUERIES / (shape.heads / shape.keyValueHeads)));
}

/** The units of a forward pass: table of [segment, first row, rows], the longest row, and rows x keys. */
export function forwardBlocks(
  plan: AttentionPlan,
  prefixes: Int32Array,
  shape: AttentionShape,
): RowBlocks & { readonly longest: number; readonly pairs: number } {
  const height = unitRows(shape);
  const table: number[] = [];
  let longest = 0;
  let pairs = 0;
  for (let s = 0; s < prefixes.length; s += 1) {
    for (let row = 0; row < plan.rowCounts[s]; row += height) {
      const rows = Math.min(height, plan.rowCounts[s] - row);
      const length = prefixes[s] + row + rows;
      table.push(s, row, rows);
      longest = Math.max(longest, length);
      pairs += rows * length;
    }
  }
  return { table: Int32Array.from(table), count: table.length / 3, longest, pairs };
}

/** Cuts the rows of a plan into panels for the backward pass; tables of [segment, row, rows, offset, stride, panel row]. */
export function backwardPanels(
  plan: AttentionPlan,
  prefixes: Int32Array,
  shape: AttentionShape,
): Panel[] {
  const group = shape.heads / shape.keyValueHeads;
  const height = unitRows(shape);
  const budget = PANEL_FLOATS / shape.keyValueHeads;
  const panels: Panel[] = [];
  let parts: number[] = [];
  let blocks: number[] = [];
  let rows = 0;
  let floats = 0;
  let pairs = 0;
  let low = Number.POSITIVE_INFINITY;
  let high = 0;
  const close = () => {
    if (rows === 0) return;
    panels.push({
      parts: { table: Int32Array.from(parts), count: parts.length / 6 },
      blocks: { table: Int32Array.from(blocks), count: blocks.length / 6 },
      rows,
      floats,
      firstSlotBlock: low >> 4,
      slotBlocks: ((high + 15) >> 4) - (low >> 4),
      pairs,
    });
    parts = [];
    blocks = [];
    rows = 0;
    floats = 0;
    pairs = 0;
    low = Number.POSITIVE_INFINITY;
    high = 0;
  };
  for (let s = 0; s < prefixes.length; s += 1) {
    for (let row = 0; row < plan.rowCounts[s]; row += PART_ROWS) {
      const partRows = Math.min(PART_ROWS, plan.rowCounts[s] - row);
      const length = prefixes[s] + row + partRows;
      const stride = rowStrideFor(length);
      const size = partRows * group * stride;
      if (rows > 0 && floats + size > budget) close();
      parts.push(s, row, partRows, floats, stride, rows);
      for (let r = 0; r < partRows; r += height) {
        const count = Math.min(height, partRows - r);
        blocks.push(s, row + r, count, floats + r * group * stride, stride, rows + r);
      }
      for (let i = plan.spanOffsets[s]; i < plan.spanOffsets[s + 1]; i += 1) {
        if (plan.spanLengths[i] === 0) continue;
        low = Math.min(low, plan.spanSlots[i]);
        high = Math.max(high, plan.spanSlots[i] + plan.spanLengths[i]);
      }
      low = Math.min(low, plan.selfSlots[s]);
      high = Math.max(high, plan.selfSlots[s] + row + partRows);
      rows += partRows;
      floats += size;
      pairs += partRows * length * group;
    }
  }
  close();
  return panels;
}
