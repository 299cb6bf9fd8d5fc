/**
 * Logits and log-probabilities of loss terms, in chunks of rows, forward and backward.
 *
 * Law: logits exist only for rows with terms, at most `chunkRows` rows at a time (plus a bounded number kept for
 * backward), and the chunking never changes a result. A row may have several terms. Shapes: U rows, D width, N terms.
 */
import type { IntTensor, Tensor } from "../backend.js";
import { type LayerContext, projectBackward } from "./layer.js";
import type { Parameter } from "./parameters.js";

/** Rows of logits computed at a time: large enough for matrix kernels, 4 MB at a vocabulary of 2,048. */
const chunkRows = 512;
/** Logits kept for backward instead of being recomputed, in floats (128 MB). */
const keptLogitsFloats = 32 * 1024 * 1024;

interface Chunk {
  readonly rows: number;
  /** Rows of the hidden states in this chunk. */
  readonly hiddenRows: IntTensor;
  /** The terms of this chunk, by index among all terms, and their rows (within the chunk) and targets. */
  readonly terms: Int32Array;
  readonly termRows: IntTensor;
  readonly targets: IntTensor;
  readonly logSumExp: Tensor;
  readonly logprobs: Tensor;
  logits: Tensor | null;
}

/** The loss head of one pass. */
export class LossHead {
  readonly #context: LayerContext;
  readonly #head: Parameter;
  readonly #hidden: Tensor;
  readonly #temperature: number;
  readonly #chunks: Chunk[] = [];
  readonly #terms: number;

  /**
   * Queues the forward pass.
   * @param hidden - [U, D] after the final norm; stays the caller's until `free`.
   * @param termRows - [N] index into the U rows. @param targets - [N] token ids.
   */
  constructor(
    context: LayerContext,
    head: Parameter,
    hidden: Tensor,
    termRows: Int32Array,
    targets: Int32Array,
    options: { readonly temperature: number; readonly keepForBackward: boolean },
  ) {
    this.#context = context;
    this.#head = head;
    this.#hidden = hidden;
    this.#temperature = options.temperature;
    this.#terms = termRows.length;
    const { backend, workspace, config } = context;
    const vocabulary = config.vocabularySize;
    const total = hidden.length / config.width;
    const termsOfChunk: number[][] = Array.from({ length: Math.ceil(total / chunkRows) }, () => []);
    for (let t = 0; t < termRows.length; t += 1)
      termsOfChunk[Math.floor(termRows[t] / chunkRows)].push(t);
    let keptFloats = 0;
    for (let c = 0; c < termsOfChunk.length; c += 1) {
      const start = c * chunkRows;
      const rows = Math.min(chunkRows, total - start);
      const terms = Int32Array.from(termsOfChunk[c]);
      const chunk: Chunk = {
        rows,
        hiddenRows: backend.allocateInts(Int32Array.from({ length: rows }, (_, i) => start + i)),
        terms,
        termRows: backend.allocateInts(terms.map((t) => termRows[t] - start)),
        targets: backend.allocateInts(terms.map((t) => targets[t])),
        logSumExp: backend.allocate(rows),
        logprobs: backend.allocate(terms.length),
        logits: null,
      };
      const logits = this.#computeLogits(chunk);
      backend.logSumExp(chunk.logSumExp, logits, vocabulary, this.#temperature);
      backend.gatherLogprobs(
        chunk.logprobs,
        logits,
        chunk.logSumExp,
        chunk.termRows,
        chunk.targets,
        vocabulary,
        this.#temperature,
      );
      if (options.keepForBackward && keptFloats + logits.length <= keptLogitsFloats) {
        chunk.logits = logits;
        keptFloats += logits.length;
      } else {
        workspace.give(logits);
      }
      this.#chunks.push(chunk);
    }
  }

  #hiddenOf(chunk: Chunk): Tensor {
    const { backend, workspace, config } = this.#context;
    const hidden = workspace.take(chunk.rows * config.width);
    backend.gatherRows(hidden, this.#hidden, chunk.hiddenRows, config.width);
    return hidden;
  }

  #computeLogits(chunk: Chunk): Tensor {
    const { backend, workspace, config } = this.#context;
    const hidden = this.#hiddenOf(chunk);
    const logits = workspace.take(chunk.rows * config.vocabularySize);
    backend.linear(logits, hidden, this.#head.weight, config.vocabularySize, config.width);
    workspace.give(hidden);
    return logits;
  }

  /** [N] log-probability of each term's target. */
  async readLogprobs(): Promise<Float32Array> {
    const logprobs = new Float32Array(this.#terms);
    for (const chunk of this.#chunks) {
      const values = await this.#context.backend.read(chunk.logprobs);
      for (let i = 0; i < chunk.terms.length; i += 1) logprobs[chunk.terms[i]] = values[i];
    }
    return logprobs;
  }

  /** Queues the backward pass. Returns d(hidden), [U, D], the caller's. */
  backward(gradLogprobs: Float32Array): Tensor {
    const { backend, workspace, config } = this.#context;
    const gradHidden = workspace.takeZeros(this.#hidden.length);
    for (const chunk of this.#chunks) {
      const logits = chunk.logits ?? this.#computeLogits(chunk);
      chunk.logits = null;
      backend.write(
        chunk.logprobs,
        Float32Array.from(chunk.terms, (t) => gradLogprobs[t]),
      );
      backend.logprobsBackward(
        logits,
        chunk.logprobs,
        logits,
        chunk.logSumExp,
        chunk.termRows,
        chunk.targets,
        config.vocabularySize,
        this.#temperature,
      );
      const hidden = this.#hiddenOf(chunk);
      const gradChunk = workspace.takeZeros(hidden.length);
      projectBackward(this.#context, this.#head, gradChunk, logits, hidden);
      backend.scatterAddRows(gradHidden, gradChunk, chunk.hiddenRows, config.width);
      workspace.give(logits, hidden, gradChunk);
    }
    return gradHidden;
  }

  /** Frees the chunks' buffers. */
  free(): void {
    const { backend, workspace } = this.#context;
    for (const chunk of this.#chunks) {
      for (const buffer of [chunk.hiddenRows, chunk.termRows, chunk.targets]) backend.free(buffer);
      backend.free(chunk.logSumExp);
      backend.free(chunk.logprobs);
      if (chunk.logits !== null) workspace.give(chunk.logits);
    }
    this.#chunks.length = 0;
  }
}
