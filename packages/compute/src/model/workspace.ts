/**
 * Scratch buffers that are reused within a pass, so that memory stays near its peak need.
 *
 * Law: a taken buffer's content is arbitrary; whoever needs zeros asks for them.
 */
import type { Backend, Tensor } from "../backend.js";

/** A pool of buffers by length. */
export class Workspace {
  readonly #backend: Backend;
  readonly #free = new Map<number, Tensor[]>();

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** A buffer with arbitrary content. */
  take(length: number): Tensor {
    return this.#free.get(length)?.pop() ?? this.#backend.allocate(length);
  }

  /** A buffer of zeros. */
  takeZeros(length: number): Tensor {
    const reused = this.#free.get(length)?.pop();
    if (reused === undefined) return this.#backend.allocate(length);
    this.#backend.fill(reused, 0);
    return reused;
  }

  /** Returns buffers to the pool. */
  give(...tensors: readonly Tensor[]): void {
    for (const tensor of tensors) {
      const list = this.#free.get(tensor.length);
      if (list === undefined) this.#free.set(tensor.length, [tensor]);
      else list.push(tensor);
    }
  }

  /** Frees every buffer that lies in the pool. */
  clear(): void {
    for (const list of this.#free.values()) for (const tensor of list) this.#backend.free(tensor);
    this.#free.clear();
  }
}
