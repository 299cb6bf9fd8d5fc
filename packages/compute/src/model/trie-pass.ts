/**
 * One differentiable pass over a token trie.
 *
 * Law: each unique token is computed once; after the last layer's keys only rows with loss terms are computed; all
 * memory of the pass is freed by `backward` or `free`. Shapes: R rows, U rows with terms, N terms.
 */
import { GimbalError, type LossTerms, type TokenTrie } from "@gimbal-rl/core";
import type { IntTensor, KeyValueCache, Tensor } from "../backend.js";
import type { ForwardPass, ModelConfig } from "../policy.js";
import { selectPlanRows, trieToPlan } from "./attention-plan.js";
import {
  attentionShapeOf,
  backwardLayer,
  forwardLayer,
  giveActivations,
  type KeyRows,
  type LayerActivations,
  type LayerContext,
  type QueryRows,
} from "./layer.js";
import { LossHead } from "./loss-head.js";
import { gradientOf, type ModelParameters } from "./parameters.js";
import type { RopeTable } from "./rope-table.js";

/** Options of a pass. */
export interface PassOptions {
  readonly temperature: number;
  readonly keepForBackward: boolean;
}

/** @throws {GimbalError} `shape-mismatch` when an id is outside the vocabulary. */
export function expectTokenIds(ids: Int32Array, config: ModelConfig): void {
  for (const id of ids) {
    if (id < 0 || id >= config.vocabularySize) {
      throw new GimbalError(
        "shape-mismatch",
        `Found token id ${id}; the vocabulary has ${config.vocabularySize}. Is this the model's own tokenizer?`,
        { boundary: "compute" },
      );
    }
  }
}

function uniqueRows(
  terms: Pick<LossTerms, "rows" | "targetIds">,
  total: number,
): { readonly rows: Int32Array; readonly termRows: Int32Array } {
  if (terms.rows.length !== terms.targetIds.length) {
    throw new GimbalError(
      "shape-mismatch",
      `Found ${terms.rows.length} term rows and ${terms.targetIds.length} targets; expected equal.`,
    );
  }
  const indexOfRow = new Int32Array(total).fill(-1);
  for (const row of terms.rows) {
    if (row < 0 || row >= total)
      throw new GimbalError("shape-mismatch", `Loss term at row ${row}; the trie has ${total}.`);
    indexOfRow[row] = 0;
  }
  const rows: number[] = [];
  for (let row = 0; row < total; row += 1)
    if (indexOfRow[row] === 0) indexOfRow[row] = rows.push(row) - 1;
  return { rows: Int32Array.from(rows), termRows: terms.rows.map((row) => indexOfRow[row]) };
}

class TriePass implements ForwardPass {
  readonly rows: number;
  logprobs: Float32Array = new Float32Array(0);
  readonly #context: LayerContext;
  readonly #parameters: ModelParameters;
  readonly #ids: IntTensor;
  readonly #ints: IntTensor[] = [];
  readonly #keyRows: KeyRows;
  readonly #allRows: QueryRows;
  readonly #lastRows: QueryRows;
  readonly #caches: KeyValueCache[] = [];
  readonly #kept: LayerActivations[] = [];
  readonly #last: Tensor;
  readonly #inverseLast: Tensor;
  readonly #final: Tensor;
  readonly #head: LossHead;
  #state: "kept" | "not-kept" | "freed";

  constructor(
    context: LayerContext,
    parameters: ModelParameters,
    rope: RopeTable,
    trie: TokenTrie,
    terms: Pick<LossTerms, "rows" | "targetIds">,
    options: PassOptions,
  ) {
    const { backend, workspace, config } = context;
    const rows = trie.tokenIds.length;
    const plan = trieToPlan(trie);
    const used = uniqueRows(terms, rows);
    expectTokenIds(trie.tokenIds, config);
    expectTokenIds(terms.targetIds, config);
    const cosSin = rope.covering(trie.positions);

    this.#context = context;
    this.#parameters = parameters;
    this.rows = rows;
    this.#state = options.keepForBackward ? "kept" : "not-kept";
    const ints = (values: Int32Array): IntTensor => {
      const tensor = backend.allocateInts(values);
      this.#ints.push(tensor);
      return tensor;
    };
    this.#ids = ints(trie.tokenIds);
    const positions = ints(trie.positions);
    const slots = ints(Int32Array.from({ length: rows }, (_, row) => row));
    this.#keyRows = { count: rows, positions, slots, cosSin };
    this.#allRows = { count: rows, indices: null, positions, plan };
    this.#lastRows = {
      count: used.rows.length,
      indices: ints(used.rows),
      positions: ints(used.rows.map((row) => trie.positions[row])),
      plan: selectPlanRows(plan, used.rows, rows),
    };

    let x = workspace.take(rows * config.width);
    backend.embed(x, parameters.embedding.weight, this.#ids, config.width);
    for (const layer of parameters.layers) {
      let cache = this.#caches.at(-1);
      if (cache === undefined || options.keepForBackward) {
        cache = backend.allocateCache(rows, attentionShapeOf(config));
        this.#caches.push(cache);
      }
      const query = layer === parameters.layers.at(-1) ? this.#lastRows : this.#allRows;
      const { out, activations } = forwardLayer(context, layer, x, cache, this.#keyRows, query);
      if (options.keepForBackward) {
        this.#kept.push(activations);
      } else {
        giveActivations(workspace, activations);
        workspace.give(x);
      }
      x = out;
    }
    this.#last = x;
    this.#inverseLast = workspace.take(used.rows.length);
    this.#final = workspace.take(x.length);
    backend.rmsNorm(
      this.#final,
      this.#inverseLast,
      x,
      parameters.finalNorm.weight,
      config.width,
      config.normEpsilon,
    );
    this.#head = new LossHead(
      context,
      parameters.head,
      this.#final,
      used.termRows,
      terms.targetIds,
      options,
    );
  }

  async finishForward(): Promise<this> {
    this.logprobs = await this.#head.readLogprobs();
    return this;
  }

  async backward(gradLogprobs: Float32Array): Promise<void> {
    if (this.#state !== "kept") {
      throw new GimbalError(
        "bad-usage",
        `Backward on a pass that is ${this.#state}; expected a fresh pass with keepForBackward.`,
      );
    }
    if (gradLogprobs.length !== this.logprobs.length) {
      throw new GimbalError(
        "shape-mismatch",
        `Found ${gradLogprobs.length} gradients for ${this.logprobs.length} terms; expected equal.`,
      );
    }
    const context = this.#context;
    const { backend, workspace, config } = context;
    const { layers, finalNorm, embedding } = this.#parameters;
    const gradFinal = this.#head.backward(gradLogprobs);
    let grad = workspace.takeZeros(gradFinal.length);
    backend.rmsNormBackward(
      grad,
      gradientOf(backend, finalNorm),
      gradFinal,
      this.#last,
      this.#inverseLast,
      finalNorm.weight,
      config.width,
    );
    workspace.give(gradFinal);
    for (let i = layers.length - 1; i >= 0; i -= 1) {
      const kept = this.#kept.pop();
      if (kept === undefined) break;
      const query = i === layers.length - 1 ? this.#lastRows : this.#allRows;
      grad = backwardLayer(context, layers[i], kept, this.#keyRows, query, grad);
      giveActivations(workspace, kept);
      workspace.give(kept.x);
      const cache = this.#caches.pop();
      if (cache !== undefined) backend.free(cache);
    }
    backend.embedBackward(gradientOf(backend, embedding), grad, this.#ids, config.width);
    workspace.give(grad);
    this.free();
  }

  free(): void {
    if (this.#state === "freed") return;
    this.#state = "freed";
    const { backend, workspace } = this.#context;
    for (const kept of this.#kept) {
      giveActivations(workspace, kept);
      workspace.give(kept.x);
    }
    for (const cache of this.#caches) backend.free(cache);
    for (const tensor of this.#ints) backend.free(tensor);
    this.#head.free();
    workspace.give(this.#last, this.#inverseLast, this.#final);
    workspace.clear();
  }
}

/** Runs a trie through the model and reads the log-probabilities of the terms. */
export async function runTriePass(
  context: LayerContext,
  parameters: ModelParameters,
  rope: RopeTable,
  trie: TokenTrie,
  terms: Pick<LossTerms, "rows" | "targetIds">,
  options: PassOptions,
): Promise<ForwardPass> {
  if (terms.rows.length === 0) {
    return {
      rows: trie.tokenIds.length,
      logprobs: new Float32Array(0),
      backward: () => Promise.resolve(),
      free: () => undefined,
    };
  }
  return new TriePass(context, parameters, rope, trie, terms, options).finishForward();
}
