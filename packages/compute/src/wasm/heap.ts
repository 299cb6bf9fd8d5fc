/**
 * The allocator of the shared memory; it runs on the thread that owns the backend only.
 *
 * Small blocks come from size classes with free lists, large ones from the best fitting free region, and freed
 * neighbours grow together again. Memory above `#top` was never used and holds zeros.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { SharedMemory } from "./web-assembly.js";

const ALIGNMENT = 64;
const PAGE = 65536;
const LARGEST_CLASS = 32768;
const CHUNK = 262144;
/** Kernels may read a few floats past a buffer; the last page is never given out. */
const MARGIN = PAGE;

/** A block: byte address, and whether its bytes are known to be zero. */
export interface Block {
  readonly pointer: number;
  readonly clean: boolean;
}

interface Region {
  start: number;
  size: number;
}

/** Rounds a size up to its class: multiples of 64 up to 512, then four steps per doubling. */
function classSize(bytes: number): number {
  if (bytes <= 512) return Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
  const step = 2 ** (Math.floor(Math.log2(bytes - 1)) - 2);
  return Math.ceil(bytes / step) * step;
}

/** Allocates 64-byte aligned blocks of one growable shared memory. */
export class SharedHeap {
  readonly #memory: SharedMemory;
  readonly #maximumBytes: number;
  readonly #sizes = new Map<number, number>();
  readonly #freeSmall = new Map<number, number[]>();
  /** Free large regions in order of address; no two touch. */
  readonly #free: Region[] = [];
  #top: number;

  constructor(memory: SharedMemory, firstByte: number, maximumBytes: number) {
    this.#memory = memory;
    this.#top = Math.ceil(firstByte / ALIGNMENT) * ALIGNMENT;
    this.#maximumBytes = maximumBytes;
  }

  /** Bytes in use, rounding included. */
  get usedBytes(): number {
    let sum = 0;
    for (const size of this.#sizes.values()) sum += size;
    return sum;
  }

  /** @throws `unavailable` when the memory is full. */
  allocate(bytes: number): Block {
    if (bytes > LARGEST_CLASS) {
      const size = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
      const block = this.#takeRegion(size);
      this.#sizes.set(block.pointer, size);
      return block;
    }
    const size = classSize(bytes);
    let list = this.#freeSmall.get(size);
    if (list === undefined) {
      list = [];
      this.#freeSmall.set(size, list);
    }
    if (list.length === 0) {
      const chunk = this.#takeRegion(CHUNK).pointer;
      for (let at = chunk + CHUNK - size; at >= chunk; at -= size) list.push(at);
    }
    const pointer = list.pop() ?? 0;
    this.#sizes.set(pointer, size);
    return { pointer, clean: false };
  }

  /** Gives a block back. */
  release(pointer: number): void {
    const size = this.#sizes.get(pointer);
    if (size === undefined) return;
    this.#sizes.delete(pointer);
    if (size <= LARGEST_CLASS) this.#freeSmall.get(size)?.push(pointer);
    else this.#giveRegion({ start: pointer, size });
  }

  #takeRegion(size: number): Block {
    let best = -1;
    for (let i = 0; i < this.#free.length; i += 1) {
      const region = this.#free[i];
      if (region.size >= size && (best < 0 || region.size < this.#free[best].size)) best = i;
    }
    if (best >= 0) {
      const region = this.#free[best];
      const pointer = region.start;
      if (region.size === size) this.#free.splice(best, 1);
      else {
        region.start += size;
        region.size -= size;
      }
      return { pointer, clean: false };
    }
    // Extend the last free region when it touches the unused end.
    const last = this.#free.at(-1);
    const start =
      last !== undefined && last.start + last.size === this.#top ? last.start : this.#top;
    this.#growTo(start + size + MARGIN);
    if (start !== this.#top) this.#free.pop();
    const clean = start === this.#top;
    this.#top = start + size;
    return { pointer: start, clean };
  }

  #giveRegion(region: Region): void {
    let low = 0;
    let high = this.#free.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#free[middle].start < region.start) low = middle + 1;
      else high = middle;
    }
    const before = this.#free[low - 1];
    const after = this.#free[low];
    if (after !== undefined && region.start + region.size === after.start) {
      region.size += after.size;
      this.#free.splice(low, 1);
    }
    if (before !== undefined && before.start + before.size === region.start) {
      before.size += region.size;
    } else this.#free.splice(low, 0, region);
  }

  #growTo(bytes: number): void {
    const present = this.#memory.buffer.byteLength;
    if (bytes <= present) return;
    if (bytes > this.#maximumBytes) this.#refuse(bytes);
    // Growing interrupts every thread, so it happens in large steps.
    const wish = Math.min(
      this.#maximumBytes,
      Math.max(bytes, present * 1.25, present + 16 * 2 ** 20),
    );
    for (const target of [wish, bytes]) {
      try {
        this.#memory.grow(Math.ceil((target - present) / PAGE));
        return;
      } catch {
        // Try the smaller step, then report.
      }
    }
    this.#refuse(bytes);
  }

  #refuse(bytes: number): never {
    throw new GimbalError(
      "unavailable",
      `The CPU backend needs ${Math.ceil(bytes / 2 ** 20)} MiB, but its memory ends at ` +
        `${Math.floor(this.#maximumBytes / 2 ** 20)} MiB. Use shorter contexts, smaller batches or a smaller model.`,
      { boundary: "compute" },
    );
  }
}
