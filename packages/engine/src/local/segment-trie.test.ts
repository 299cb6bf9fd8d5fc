import fc from "fast-check";
import { expect, test } from "vitest";
import { type Cursor, cursorDepth, isComputed, type Segment, SegmentTrie } from "./segment-trie.js";
import { StepBuilder } from "./step-builder.js";

/** Ids on the cursor's path, read from the segments. */
function pathOf(cursor: Cursor): number[] {
  const ids = cursor.segment.tokens.slice(0, cursor.offset);
  for (let node = cursor.segment.parent; node !== null; node = node.parent) {
    ids.unshift(...node.tokens);
  }
  return ids;
}

function slotsOf(cursor: Cursor): number[] {
  const slots: number[] = [];
  let count = cursor.offset;
  for (let node: Segment | null = cursor.segment; node !== null; node = node.parent) {
    for (let i = count - 1; i >= 0; i -= 1) slots.unshift(node.slot + i);
    count = node.parent?.tokens.length ?? 0;
  }
  return slots;
}

function computeAll(trie: SegmentTrie, prompts: readonly (readonly number[])[]): number {
  let rows = 0;
  for (const prompt of prompts) {
    const cursor = trie.open();
    expect(trie.advance(cursor, prompt)).toBe(prompt.length);
    const step = new StepBuilder();
    step.compute(cursor, Number.POSITIVE_INFINITY);
    rows += step.rows;
    trie.close(cursor);
  }
  return rows;
}

function uniquePrefixes(prompts: readonly (readonly number[])[]): number {
  const prefixes = new Set<string>();
  for (const prompt of prompts) {
    for (let i = 1; i <= prompt.length; i += 1) prefixes.add(prompt.slice(0, i).join(","));
  }
  return prefixes.size;
}

const prompt = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 24 });

test("rows computed equal unique tokens, and the slots used equal them", () => {
  fc.assert(
    fc.property(fc.array(prompt, { minLength: 1, maxLength: 12 }), (prompts) => {
      const trie = new SegmentTrie(1000);
      const unique = uniquePrefixes(prompts);
      expect(computeAll(trie, prompts)).toBe(unique);
      expect(trie.usedSlots).toBe(unique);
    }),
  );
});

test("open paths keep their ids, distinct slots and computed rows, whatever else comes and goes", () => {
  const action = fc.record({
    ids: prompt,
    pick: fc.nat(),
    kind: fc.constantFrom("open", "extend", "close", "compute"),
    limit: fc.integer({ min: 1, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const trie = new SegmentTrie(64);
      const open: { cursor: Cursor; ids: number[]; computed: number }[] = [];
      for (const { ids, kind, pick, limit } of actions) {
        const target = open[pick % Math.max(1, open.length)];
        if (kind === "open") {
          const cursor = trie.open();
          const moved = trie.advance(cursor, ids, 0, limit);
          open.push({ cursor, ids: ids.slice(0, moved), computed: 0 });
        } else if (target !== undefined && kind === "extend") {
          const moved = trie.advance(target.cursor, ids.slice(0, 3), 0, limit);
          target.ids.push(...ids.slice(0, moved));
        } else if (target !== undefined && kind === "compute") {
          const step = new StepBuilder();
          step.compute(target.cursor, limit);
          const { slots, positions } = step.build();
          const path = slotsOf(target.cursor);
          slots.forEach((slot, row) => {
            expect(slot).toBe(path[positions[row]]);
          });
        } else if (target !== undefined) {
          trie.close(target.cursor);
          open.splice(open.indexOf(target), 1);
        }
        const owner = new Map<number, string>();
        for (const { cursor, ids: expected } of open) {
          expect(pathOf(cursor)).toEqual(expected);
          expect(cursorDepth(cursor)).toBe(expected.length);
          slotsOf(cursor).forEach((slot, position) => {
            const prefix = expected.slice(0, position + 1).join(",");
            expect(owner.get(slot) ?? prefix).toBe(prefix);
            owner.set(slot, prefix);
          });
          for (let node = cursor.segment; node.parent !== null; node = node.parent) {
            if (node.computed > 0) expect(node.parent.computed).toBe(node.parent.tokens.length);
          }
        }
        expect(trie.usedSlots).toBeLessThanOrEqual(64);
        expect(trie.availableSlots()).toBeLessThanOrEqual(64);
      }
      for (const { cursor } of open) trie.close(cursor);
      expect(trie.availableSlots()).toBe(64);
      const last = trie.open();
      const fresh = Array.from({ length: 64 }, (_, i) => 100 + i);
      expect(trie.advance(last, fresh)).toBe(64);
    }),
    { numRuns: 200 },
  );
});

test("the least recently used leaf goes first, and its prefix stays", () => {
  const trie = new SegmentTrie(60);
  const prefix = Array.from({ length: 20 }, (_, i) => i);
  computeAll(trie, [
    [...prefix, ...new Array(16).fill(50)],
    [...prefix, ...new Array(16).fill(60)],
  ]);
  computeAll(trie, [[...prefix, ...new Array(16).fill(50)]]);
  computeAll(trie, [[...prefix, ...new Array(16).fill(70)]]);
  expect(trie.evictedSlots).toBe(16);
  const cursor = trie.open();
  expect(trie.follow(cursor, [...prefix, 50, 50])).toBe(22);
  expect(isComputed(cursor)).toBe(true);
  const evicted = trie.open();
  expect(trie.follow(evicted, [...prefix, 60, 60])).toBe(20);
});

test("slots that open paths hold are never given to another path", () => {
  const trie = new SegmentTrie(32);
  const first = trie.open();
  expect(trie.advance(first, new Array(20).fill(1))).toBe(20);
  const second = trie.open();
  expect(trie.advance(second, new Array(20).fill(2))).toBe(12);
  trie.close(second);
  expect(trie.usedSlots).toBe(20);
});

test("tokens that were never computed are dropped when their path is closed", () => {
  const trie = new SegmentTrie(100);
  const cursor = trie.open();
  trie.advance(cursor, [1, 2, 3, 4, 5, 6], 0, 10);
  new StepBuilder().compute(cursor, 2);
  trie.close(cursor);
  expect(trie.usedSlots).toBe(2);
  const next = trie.open();
  expect(trie.follow(next, [1, 2, 3])).toBe(2);
});

test("clearing forgets all paths and frees all slots", () => {
  const trie = new SegmentTrie(30);
  computeAll(trie, [
    [1, 2, 3],
    [1, 5],
  ]);
  trie.clear();
  expect(trie.usedSlots).toBe(0);
  expect(trie.segmentCount).toBe(0);
  expect(trie.follow(trie.open(), [1, 2])).toBe(0);
});
