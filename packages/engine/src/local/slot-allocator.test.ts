import fc from "fast-check";
import { expect, test } from "vitest";
import { SlotAllocator, type SlotRun } from "./slot-allocator.js";

test("no slot is handed out twice, none is lost, and everything merges again", () => {
  const action = fc.record({
    kind: fc.constantFrom("allocate", "extend", "release"),
    size: fc.integer({ min: 1, max: 12 }),
    pick: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
      const allocator = new SlotAllocator(40);
      const held: SlotRun[] = [];
      for (const { kind, pick, size } of actions) {
        const index = pick % Math.max(1, held.length);
        const run = held[index];
        if (kind === "allocate") {
          const got = allocator.allocate(size);
          if (got !== undefined) held.push(got);
          else expect(allocator.freeSlots).toBe(0);
        } else if (run !== undefined && kind === "extend") {
          const more = allocator.extend(run.start + run.length, size);
          held[index] = { start: run.start, length: run.length + more };
        } else if (run !== undefined) {
          held.splice(index, 1);
          allocator.release(run.start, run.length);
        }
        const owned = held.flatMap(({ start, length }) =>
          Array.from({ length }, (_, i) => start + i),
        );
        expect(new Set(owned).size).toBe(owned.length);
        expect(owned.length + allocator.freeSlots).toBe(40);
      }
      for (const { start, length } of held) allocator.release(start, length);
      expect(allocator.longestRun).toBe(40);
    }),
  );
});

test("the smallest run that is long enough is taken, else the longest", () => {
  const allocator = new SlotAllocator(30);
  const runs = [10, 1, 4, 1, 14].map((length) => allocator.allocate(length));
  for (const index of [0, 2, 4]) {
    const run = runs[index];
    if (run !== undefined) allocator.release(run.start, run.length);
  }
  expect(allocator.allocate(3)).toEqual({ start: 11, length: 3 });
  expect(allocator.allocate(20)).toEqual({ start: 16, length: 14 });
});
