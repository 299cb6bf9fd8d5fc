/**
 * The Backend port: a few dozen fused operations on opaque f32 buffers. The model is written once over it.
 *
 * Laws. (1) An operation's result depends only on its inputs: never on the number of threads, on how rows are
 * batched, or on where a segment or trie border lies. So the log-probability of a token computed while sampling
 * (one row at a time) equals the one computed while training (thousands of rows) bit for bit. Reductions run in
 * index order per output; attention reduces keys in order of absolute position. (2) `TypeScript reference` is the
 * specification: other backends agree with it within the tolerance table. (3) All operations are queued in order;
 * only `read` waits.
 *
 * Shapes: R rows (tokens), D width, K input width, N output width, H query heads, G key/value heads, E head width,
 * V vocabulary, T loss terms. Matrices are row-major. Linear weights are [N, K] as in Hugging Face files.
 */

/** An opaque f32 buffer. `length` counts floats. */
export interface Tensor {
  readonly length: number;
}

/** An opaque i32 buffer. */
export interface IntTensor {
  readonly length: number;
}

/** Keys and values of many tokens, addressed by slot; layout is the backend's own. */
export interface KeyValueCache {
  readonly slots: number;
}

/**
 * Which keys each query row sees. Rows come in segments of consecutive rows whose own keys lie in consecutive
 * slots: row i of a segment sees the ancestor spans completely and the slots selfSlot .. selfSlot + i.
 * Spans are in order of position, and their lengths plus i + 1 equal the row's position + 1.
 * Training, prefill of a chunk and decode (rowCount 1) are all this one shape.
 */
export interface AttentionPlan {
  /** [S] first row of the segment. */
  readonly rowStarts: Int32Array;
  /** [S] rows in the segment. */
  readonly rowCounts: Int32Array;
  /** [S] slot of the segment's first row. */
  readonly selfSlots: Int32Array;
  /** [S + 1] range of the segment's ancestor spans. */
  readonly spanOffsets: Int32Array;
  /** First slot of each ancestor span. */
  readonly spanSlots: Int32Array;
  /** Slots in each ancestor span. */
  readonly spanLengths: Int32Array;
}

/** Head geometry of an attention. H is a multiple of G. */
export interface AttentionShape {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headWidth: number;
}

/** AdamW (1711.05101) with bias correction. */
export interface AdamWOptions {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** 1-based count of this update. */
  readonly step: number;
  /** Multiplies the gradient first (clipping). */
  readonly gradientScale: number;
}

/** What a backend is; written to run.json. */
export interface BackendInfo {
  readonly id: "reference" | "wasm" | "webgpu" | "cuda";
  /** Kernel variant that decides results, e.g. `simd` or `relaxed-simd`. */
  readonly variant: string;
  readonly threads: number;
}

/** The operations. Buffers given to an operation must have the exact length that its shapes imply. */
export interface Backend {
  readonly info: BackendInfo;

  // Memory. A fresh buffer holds zeros.
  allocate(length: number): Tensor;
  allocateInts(values: Int32Array): IntTensor;
  allocateCache(slots: number, shape: AttentionShape): KeyValueCache;
  free(buffer: Tensor | IntTensor | KeyValueCache): void;
  write(target: Tensor, values: Float32Array, offset?: number): void;
  read(source: Tensor, offset?: number, length?: number): Promise<Float32Array>;
  fill(target: Tensor, value: number): void;
  copy(target: Tensor, source: Tensor): void;

  /** out[R,D] = table[V,D] rows by id. */
  embed(out: Tensor, table: Tensor, ids: IntTensor, width: number): void;
  /** gradTable[V,D] += gradOut rows, in row order. */
  embedBackward(gradTable: Tensor, gradOut: Tensor, ids: IntTensor, width: number): void;
  /** out[R,D] = source[index[r], :]. */
  gatherRows(out: Tensor, source: Tensor, indices: IntTensor, width: number): void;
  /** target[index[r], :] += source[r, :], in row order. */
  scatterAddRows(target: Tensor, source: Tensor, indices: IntTensor, width: number): void;

  /** out = x * weight / rms(x), per row of `width`; inverseRms[rows] is kept for backward. */
  rmsNorm(
    out: Tensor,
    inverseRms: Tensor,
    x: Tensor,
    weight: Tensor,
    width: number,
    epsilon: number,
  ): void;
  /** gradX += ..., gradWeight[width] += ...; rows in order. */
  rmsNormBackward(
    gradX: Tensor,
    gradWeight: Tensor,
    gradOut: Tensor,
    x: Tensor,
    inverseRms: Tensor,
    weight: Tensor,
    width: number,
  ): void;

  /** Tells the backend that a weight [N,K] changed, so that packed copies are refreshed. */
  refreshWeight(weight: Tensor, outputs: number, inputs: number): void;
  /** out[R,N] = x[R,K] weight[N,K]^T (+ bias[N]). `weight` must have been refreshed since it last changed. */
  linear(
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    outputs: number,
    inputs: number,
    bias?: Tensor,
  ): void;
  /** gradX[R,K] += gradOut[R,N] weight[N,K]. */
  linearBackwardInput(
    gradX: Tensor,
    gradOut: Tensor,
    weight: Tensor,
    outputs: number,
    inputs: number,
  ): void;
  /** gradWeight[N,K] += gradOut^T x, rows in order; gradBias[N] += column sums. */
  linearBackwardWeight(
    gradWeight: Tensor,
    gradOut: Tensor,
    x: Tensor,
    outputs: number,
    inputs: number,
    gradBias?: Tensor,
  ): void;

  /**
   * Rotary embedding in place over x[R, heads * headWidth], Hugging Face half-split convention.
   * cosSin[P, headWidth] holds cos (first half) and sin (second half) per position. `inverse` undoes it (backward).
   */
  rope(
    x: Tensor,
    positions: IntTensor,
    cosSin: Tensor,
    heads: number,
    headWidth: number,
    inverse: boolean,
  ): void;

  /** Stores keys and values [R, G * E] at the slots. */
  writeCache(cache: KeyValueCache, keys: Tensor, values: Tensor, slots: IntTensor): void;
  /** out[R, H * E]; scores are scaled by 1/sqrt(E); logSumExp[R, H] is kept for backward. */
  attention(
    out: Tensor,
    logSumExp: Tensor,
    queries: Tensor,
    cache: KeyValueCache,
    plan: AttentionPlan,
    shape: AttentionShape,
  ): void;
  /** gradQueries[R,H*E] +=; gradKeys, gradValues [slots, G*E] += (cache slots of this batch are its rows). */
  attentionBackward(
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
  ): void;

  /** out = silu(gate) * up, elementwise. */
  swiglu(out: Tensor, gate: Tensor, up: Tensor): void;
  /** gradGate +=, gradUp +=. */
  swigluBackward(gradGate: Tensor, gradUp: Tensor, gradOut: Tensor, gate: Tensor, up: Tensor): void;
  /** target += scale * source. */
  addScaled(target: Tensor, source: Tensor, scale: number): void;

  /** logSumExp[R] of logits[R,V] / temperature, reduced in index order. Temperature 0 counts as 1 here and in
   * `gatherLogprobs`, `logprobsBackward` and the log-probabilities of `sample`. */
  logSumExp(out: Tensor, logits: Tensor, vocabulary: number, temperature: number): void;
  /** out[T] = logits[rows[t], targets[t]] / temperature - logSumExp[rows[t]]. */
  gatherLogprobs(
    out: Tensor,
    logits: Tensor,
    logSumExp: Tensor,
    rows: IntTensor,
    targets: IntTensor,
    vocabulary: number,
    temperature: number,
  ): void;
  /**
   * gradLogits[R,V] = sum over the terms t of row r of gradLogprob[t] * (onehot(target) - softmax) / temperature.
   * Terms are added in order. May be the same buffer as `logits`.
   */
  logprobsBackward(
    gradLogits: Tensor,
    gradLogprobs: Tensor,
    logits: Tensor,
    logSumExp: Tensor,
    rows: IntTensor,
    targets: IntTensor,
    vocabulary: number,
    temperature: number,
  ): void;
  /**
   * Samples one id per row by inverse transform over ids in index order: the first id whose cumulative probability
   * exceeds uniforms[r]. Temperature 0 takes the first maximum. logprobs[R] equals what `gatherLogprobs` gives.
   */
  sample(
    ids: Int32Array,
    logprobs: Float32Array,
    logits: Tensor,
    uniforms: Float32Array,
    vocabulary: number,
    temperature: number,
  ): Promise<void>;

  /** sum of squares, added to out[0] in index order with f64 accumulation. */
  addSumOfSquares(out: Tensor, x: Tensor): void;
  /** One AdamW update; all tensors have the weight's length. */
  adamW(
    weight: Tensor,
    gradient: Tensor,
    firstMoment: Tensor,
    secondMoment: Tensor,
    options: AdamWOptions,
  ): void;

  [Symbol.asyncDispose](): Promise<void>;
}
