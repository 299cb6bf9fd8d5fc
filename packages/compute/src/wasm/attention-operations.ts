/**
 * Attention over the kernels: checks, tables of the plan, and the panels of the backward pass.
 *
 * Law: how rows are cut into units and panels never changes a result; the kernels' headers say why.
 */
import type {
  AttentionPlan,
  AttentionShape,
  IntTensor,
  KeyValueCache,
  Tensor,
} from "../backend.js";
import { expectLengths } from "../reference/buffers.js";
import {
  backwardPanels,
  checkPlan,
  forwardBlocks,
  rowStrideFor,
  unitRows,
} from "./attention-layout.js";
import { expectIndices } from "./buffers.js";
import { floatWord, type WasmMemory } from "./wasm-memory.js";

/** Stores keys and values [R, G * E] at the slots. */
export function writeCache(
  memory: WasmMemory,
  cache: KeyValueCache,
  keys: Tensor,
  values: Tensor,
  slots: IntTensor,
): void {
  const own = memory.cache(cache);
  const rows = memory.integers(slots);
  const { keyValueHeads, headWidth } = own.shape;
  const length = rows.length * keyValueHeads * headWidth;
  expectLengths("writeCache", ["keys", keys.length, length], ["values", values.length, length]);
  expectIndices("writeCache", rows, own.slots);
  const k = memory.in(keys);
  const v = memory.in(values);
  const sizes = [keyValueHeads, headWidth, own.valueWidth, own.blocks] as const;
  const work = length * 4;
  memory.run("writeCache", rows.length, work, k, v, own.keys, own.values, rows.pointer, ...sizes);
}

/** Backend.attention. */
export function attention(
  memory: WasmMemory,
  out: Tensor,
  logSumExp: Tensor,
  queries: Tensor,
  cache: KeyValueCache,
  plan: AttentionPlan,
  shape: AttentionShape,
): void {
  const own = memory.cache(cache, shape);
  const { heads, keyValueHeads, headWidth } = shape;
  const rows = Math.floor(logSumExp.length / heads);
  expectLengths(
    "attention",
    ["logSumExp", logSumExp.length, rows * heads],
    ["queries", queries.length, rows * heads * headWidth],
    ["out", out.length, rows * heads * headWidth],
  );
  const { prefixes, covered } = checkPlan(plan, own.slots, rows);
  const blocks = forwardBlocks(plan, prefixes, shape);
  const rowStride = rowStrideFor(blocks.longest);
  const group = heads / keyValueHeads;
  const count = unitRows(shape) * group;
  const bytes = count * (headWidth + own.valueWidth + 16 + rowStride) * 4 + 128;
  const scratch = memory.threadScratch(bytes);
  const q = memory.in(queries);
  // Rows that no segment covers keep what they held.
  const to = covered === rows ? memory.out(out) : memory.into(out);
  const kept = covered === rows ? memory.out(logSumExp) : memory.into(logSumExp);
  withPlan(memory, plan, prefixes, [blocks.table], (planAt, [table]) => {
    const work = blocks.pairs * heads * (headWidth * 4 + 20);
    memory.run(
      "attention",
      blocks.count * keyValueHeads,
      work,
      ...[to, kept, q, own.keys, own.values, table, planAt],
      ...[heads, keyValueHeads, headWidth, own.valueWidth, own.blocks],
      floatWord(1 / Math.sqrt(headWidth)),
      ...scratch,
      rowStride,
    );
  });
}

/** Puts a plan into memory: six addresses that `openSegment` reads. */
function withPlan(
  memory: WasmMemory,
  plan: AttentionPlan,
  prefixes: Int32Array,
  tables: readonly Int32Array[],
  use: (planAt: number, tables: readonly number[]) => void,
): void {
  const { rowStarts, selfSlots, spanOffsets, spanSlots, spanLengths } = plan;
  const arrays = [rowStarts, selfSlots, spanOffsets, spanSlots, spanLengths, prefixes];
  memory.withTables([...arrays, ...tables], (addresses) => {
    memory.withTables([Int32Array.from(addresses.slice(0, 6))], ([planAt]) => {
      use(planAt, addresses.slice(6));
    });
  });
}

/** Backend.attentionBackward: rows of a panel first, then the keys they saw. */
export function attentionBackward(
  memory: WasmMemory,
  gradQueries: Tensor,
  gradKeys: Tensor,
  gradValues: Tensor,
  gradOut: Tensor,
  out: Tensor,
  logSumExp: Tensor,
  queries: Tensor,
  cache: KeyValueCache,
  plan: AttentionPlan,
  shape: AttentionShape,
): void {
  const own = memory.cache(cache, shape);
  const { heads, keyValueHeads, headWidth } = shape;
  const rows = Math.floor(logSumExp.length / heads);
  const queryLength = rows * heads * headWidth;
  const keyLength = own.slots * keyValueHeads * headWidth;
  expectLengths(
    "attentionBackward",
    ["logSumExp", logSumExp.length, rows * heads],
    ["queries", queries.length, queryLength],
    ["out", out.length, queryLength],
    ["gradOut", gradOut.length, queryLength],
    ["gradQueries", gradQueries.length, queryLength],
    ["gradKeys", gradKeys.length, keyLength],
    ["gradValues", gradValues.length, keyLength],
  );
  const { prefixes } = checkPlan(plan, own.slots, rows);
  const panels = backwardPanels(plan, prefixes, shape);
  if (panels.length === 0) return;
  const group = heads / keyValueHeads;
  const width = own.valueWidth;
  const scratch = memory.threadScratch(unitRows(shape) * group * (width + 16) * 4 + 256);
  const floats = Math.max(...panels.map((panel) => panel.floats));
  const panelRows = Math.max(...panels.map((panel) => panel.rows));
  const packBytes = keyValueHeads * panelRows * group * width * 4;
  const sizes = [own.valueBytes, own.keyBytes]; // keys by slot, values by block
  sizes.push(
    keyValueHeads * floats * 4 + 64,
    keyValueHeads * floats * 4 + 64,
    packBytes,
    packBytes,
  );
  memory.withBytes(sizes, ([keysBySlot, valuesByBlock, p, s, packedQ, packedG]) => {
    const queryGradients = memory.into(gradQueries);
    const given = [gradOut, out, logSumExp, queries].map((t) => memory.in(t));
    const keyGradients = [gradKeys, gradValues].map((t) => memory.into(t));
    const shapeWords = [heads, keyValueHeads, headWidth, width];
    const scale = floatWord(1 / Math.sqrt(headWidth));
    memory.run(
      "turnCache",
      own.blocks * keyValueHeads,
      keyLength * 8,
      ...[own.keys, own.values, keysBySlot, valuesByBlock, headWidth, width],
    );
    for (const panel of panels) {
      const tables = [panel.blocks.table, panel.parts.table];
      withPlan(memory, plan, prefixes, tables, (planAt, [blocks, parts]) => {
        const work = panel.pairs * keyValueHeads * headWidth * 2;
        memory.run(
          "attentionBackwardRows",
          panel.blocks.count * keyValueHeads,
          work * 3,
          ...[
            queryGradients,
            ...given,
            own.keys,
            keysBySlot,
            valuesByBlock,
            blocks,
            planAt,
            ...shapeWords,
          ],
          ...[own.blocks, scale, ...scratch, p, s, floats, packedQ, packedG, panelRows],
        );
        memory.run(
          "attentionBackwardKeys",
          panel.slotBlocks * keyValueHeads,
          work * 2,
          ...[...keyGradients, p, s, parts, panel.parts.count, planAt, ...shapeWords],
          ...[floats, packedQ, packedG, panelRows, ...scratch, panel.firstSlotBlock],
        );
      });
    }
  });
}
