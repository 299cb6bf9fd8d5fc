/**
 * Small helpers of the contract suites: upload, run, read, free.
 */
import type { AttentionPlan, Backend, IntTensor, KeyValueCache, Tensor } from "../backend.js";

/** Uploads and frees buffers of one case. */
export class Bench {
  readonly backend: Backend;
  readonly #owned: (Tensor | IntTensor | KeyValueCache)[] = [];

  constructor(backend: Backend) {
    this.backend = backend;
  }

  own<Buffer extends Tensor | IntTensor | KeyValueCache>(buffer: Buffer): Buffer {
    this.#owned.push(buffer);
    return buffer;
  }

  zeros(length: number): Tensor {
    return this.own(this.backend.allocate(length));
  }

  floats(values: Float32Array): Tensor {
    const tensor = this.zeros(values.length);
    this.backend.write(tensor, values);
    return tensor;
  }

  /** A linear weight, refreshed. */
  weight(values: Float32Array, outputs: number, inputs: number): Tensor {
    const tensor = this.floats(values);
    this.backend.refreshWeight(tensor, outputs, inputs);
    return tensor;
  }

  ints(values: Int32Array): IntTensor {
    return this.own(this.backend.allocateInts(values));
  }

  read(tensor: Tensor): Promise<Float32Array> {
    return this.backend.read(tensor);
  }

  free(): void {
    for (const buffer of this.#owned) this.backend.free(buffer);
    this.#owned.length = 0;
  }
}

/** Runs a case with a bench whose buffers are freed afterwards. */
export async function withBench(
  backend: Backend,
  body: (bench: Bench) => Promise<void>,
): Promise<void> {
  const bench = new Bench(backend);
  try {
    await body(bench);
  } finally {
    bench.free();
  }
}

/** An AttentionPlan from plain segments. */
export function planOf(
  segments: readonly {
    readonly rowStart: number;
    readonly rowCount: number;
    readonly selfSlot: number;
    /** [slot, length] of each ancestor span. */
    readonly spans: readonly (readonly [slot: number, length: number])[];
  }[],
): AttentionPlan {
  const offsets = [0];
  for (const { spans } of segments) offsets.push((offsets.at(-1) ?? 0) + spans.length);
  const spans = segments.flatMap((segment) => segment.spans);
  return {
    rowStarts: Int32Array.from(segments, (s) => s.rowStart),
    rowCounts: Int32Array.from(segments, (s) => s.rowCount),
    selfSlots: Int32Array.from(segments, (s) => s.selfSlot),
    spanOffsets: Int32Array.from(offsets),
    spanSlots: Int32Array.from(spans, ([slot]) => slot),
    spanLengths: Int32Array.from(spans, ([, length]) => length),
  };
}

/** The given rows of a buffer [R, width]. */
export function pickRows(
  values: Float32Array,
  rows: readonly number[],
  width: number,
): Float32Array {
  const out = new Float32Array(rows.length * width);
  rows.forEach((row, i) => {
    out.set(values.subarray(row * width, (row + 1) * width), i * width);
  });
  return out;
}
