import fc from "fast-check";
import { expect, it } from "vitest";
import { SharedHeap } from "./heap.js";
import type { SharedMemory } from "./web-assembly.js";

const PAGE = 65536;

/** A memory that only counts pages. */
function fakeMemory(): SharedMemory & { pages: number } {
  return {
    pages: 1,
    get buffer() {
      return { byteLength: this.pages * PAGE } as SharedArrayBuffer;
    },
    grow(pages: number) {
      this.pages += pages;
      return this.pages - pages;
    },
  };
}

it("never hands out overlapping, unaligned or out-of-memory blocks", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 3_000_000 }), fc.nat()), { maxLength: 120 }),
      (steps) => {
        const memory = fakeMemory();
        const heap = new SharedHeap(memory, 4096, 2 ** 32);
        const live: { pointer: number; bytes: number }[] = [];
        for (const [bytes, pick] of steps) {
          if (pick % 3 === 0 && live.length > 0) {
            const [gone] = live.splice(pick % live.length, 1);
            heap.release(gone.pointer);
            continue;
          }
          const { pointer } = heap.allocate(bytes);
          expect(pointer % 64).toBe(0);
          expect(pointer).toBeGreaterThanOrEqual(4096);
          expect(pointer + bytes).toBeLessThanOrEqual(memory.pages * PAGE);
          for (const other of live) {
            const apart =
              pointer + bytes <= other.pointer || other.pointer + other.bytes <= pointer;
            expect(apart).toBe(true);
          }
          live.push({ pointer, bytes });
        }
      },
    ),
    { numRuns: 60 },
  );
});

it("reuses freed memory: changing batch sizes do not grow it without end", () => {
  const memory = fakeMemory();
  const heap = new SharedHeap(memory, 4096, 2 ** 32);
  const round = (rows: number) => {
    const blocks = [128, 384, 64, 2048].map((width) => heap.allocate(rows * width * 4));
    for (const { pointer } of blocks) heap.release(pointer);
  };
  for (let i = 0; i < 10; i += 1) round(5000 + i * 100);
  const pages = memory.pages;
  for (let i = 0; i < 200; i += 1) round(1000 + ((i * 7919) % 4900));
  expect(memory.pages).toBe(pages);
  expect(heap.usedBytes).toBe(0);
});

it("says how much was needed when the memory is full", () => {
  const heap = new SharedHeap(fakeMemory(), 4096, 2 ** 24);
  expect(() => heap.allocate(2 ** 25)).toThrowError(/needs 33 MiB, but its memory ends at 16 MiB/);
});

it("knows which blocks were never used", () => {
  const heap = new SharedHeap(fakeMemory(), 4096, 2 ** 32);
  const first = heap.allocate(100_000);
  expect(first.clean).toBe(true);
  heap.release(first.pointer);
  expect(heap.allocate(100_000)).toEqual({ pointer: first.pointer, clean: false });
  expect(heap.allocate(200_000).clean).toBe(true);
});
