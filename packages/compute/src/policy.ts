/**
 * What the sampler and the trainer use of a model. `loadPolicy` (policy over any Backend) implements it.
 */
import type { LossTerms, TokenTrie } from "@gimbal-rl/core";
import type { AttentionPlan, Backend, KeyValueCache, Tensor } from "./backend.js";

/** Llama 3's stretching of the rotary frequencies for long contexts. */
export interface Llama3RopeScaling {
  readonly factor: number;
  readonly lowFrequencyFactor: number;
  readonly highFrequencyFactor: number;
  readonly originalMaxPositions: number;
}

/** The part of a Hugging Face `config.json` that decides the forward pass. */
export interface ModelConfig {
  /** `qwen3` normalises each query and key head before the rotary embedding; `llama` does not. */
  readonly architecture: "qwen3" | "llama";
  readonly vocabularySize: number;
  readonly width: number;
  readonly intermediateWidth: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headWidth: number;
  readonly normEpsilon: number;
  readonly ropeTheta: number;
  /** Absent = plain rotary embedding. */
  readonly ropeScaling?: Llama3RopeScaling;
  readonly maxPositions: number;
  readonly tiedEmbeddings: boolean;
}

/** A forward pass that can be differentiated once. */
export interface ForwardPass {
  /** Unique rows computed. */
  readonly rows: number;
  /** [N] log-probability of each term's target at the pass's temperature. */
  readonly logprobs: Float32Array;
  /** Adds d(loss)/d(parameters) to the gradients, given d(loss)/d(logprob) per term, shape [N]. Frees the pass. */
  backward(gradLogprobs: Float32Array): Promise<void>;
  /** Frees the pass without differentiating. */
  free(): void;
}

/**
 * Learning-rate multipliers by kind of parameter; 1 where absent. 0 freezes: such a parameter keeps its weights and
 * optimiser state, and its gradient counts neither in the reported norm nor in the clipping of the others.
 */
export interface LearningRateScales {
  /** Token embeddings and an untied output head. */
  readonly embedding?: number;
  /**
   * All RMS-norm weights: those before attention and MLP, those of query and key heads (Qwen3), and the last one
   * unless `finalNorm` is given.
   */
  readonly norm?: number;
  /** Query, key, value and output projections. */
  readonly attention?: number;
  /** Gate, up and down projections. */
  readonly mlp?: number;
  /** The last norm alone, which scales all logits together; default: `norm`. */
  readonly finalNorm?: number;
}

/** Options of one optimiser update. */
export interface UpdateOptions {
  readonly learningRate: number;
  readonly learningRateScales?: LearningRateScales;
  /** Default 0.9. */
  readonly beta1?: number;
  /** Default 0.999. */
  readonly beta2?: number;
  /** Default 1e-8. */
  readonly epsilon?: number;
  /** Applies to matrices, never to norm weights. Default 0. */
  readonly weightDecay?: number;
  /** Global gradient norm, over the parameters that are not frozen, is clipped to this. Default: no clipping. */
  readonly maxGradientNorm?: number;
}

/** A policy with weights, gradients and optimiser state on one backend. */
export interface TrainablePolicy {
  readonly config: ModelConfig;
  readonly backend: Backend;
  readonly parameterCount: number;
  /** Computes term log-probabilities over a trie; each unique token once. `keepForBackward` false saves memory. */
  forward(
    trie: TokenTrie,
    terms: Pick<LossTerms, "rows" | "targetIds">,
    options: { readonly temperature: number; readonly keepForBackward: boolean },
  ): Promise<ForwardPass>;
  /** AdamW on the accumulated gradients, then zeroes them. Returns the norm before clipping, frozen parameters left
   * out. @throws {GimbalError} `non-finite` when the gradient is: it is cleared, weights and optimiser state stay. */
  update(options: UpdateOptions): Promise<{ readonly gradientNorm: number }>;
  /** Writes model.safetensors and config.json (Hugging Face names), and optimizer.safetensors when asked.
   * Files appear complete or not at all. */
  save(dir: string, options: { readonly optimizer: boolean }): Promise<void>;
  /** Replaces the weights, and the optimiser state when present and asked (else it starts anew); clears gradients.
   * Nothing is changed when the folder is refused. @throws {GimbalError} `model-invalid`. */
  load(dir: string, options: { readonly optimizer: boolean }): Promise<void>;
  /** Gradient of every parameter by Hugging Face name; for tests. */
  readGradients(): Promise<Map<string, Float32Array>>;
  readWeights(): Promise<Map<string, Float32Array>>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A policy that decodes over key/value caches; the sampler's view. */
export interface DecodablePolicy {
  readonly config: ModelConfig;
  readonly backend: Backend;
  /** One cache per layer. */
  allocateCaches(slots: number): KeyValueCache[];
  /**
   * Runs rows through the model, storing their keys and values, and returns logits [L, V] for the rows listed.
   * @param tokenIds - [R]; `positions` - [R]; `slots` - [R] where each row's keys go.
   * @param logitRows - [L] rows whose logits are wanted; the caller frees the logits. L 0 gives an empty tensor.
   * @throws {GimbalError} `shape-mismatch`, or `context-length-exceeded` for a position past `maxPositions`.
   */
  decode(input: {
    readonly tokenIds: Int32Array;
    readonly positions: Int32Array;
    readonly slots: Int32Array;
    readonly plan: AttentionPlan;
    readonly caches: readonly KeyValueCache[];
    readonly logitRows: Int32Array;
  }): Tensor;
}
