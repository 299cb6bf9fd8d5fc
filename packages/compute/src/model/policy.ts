/**
 * A policy: config, parameters and optimiser state over any Backend, for training and for decoding.
 *
 * Law: training and decoding run the same operations, so a sampled token's log-probability is the same number in
 * both; the same calls in the same order give the same weights, bit for bit.
 */
import type { LossTerms, TokenTrie } from "@gimbal-rl/core";
import type { Backend, KeyValueCache, Tensor } from "../backend.js";
import type {
  DecodablePolicy,
  ForwardPass,
  ModelConfig,
  TrainablePolicy,
  UpdateOptions,
} from "../policy.js";
import { modelConfigToJson, parseModelConfig, validateModelConfig } from "./config.js";
import { runDecode } from "./decode.js";
import { attentionShapeOf } from "./layer.js";
import { applyUpdate } from "./optimiser.js";
import {
  allocateParameters,
  gradientOf,
  initialValues,
  type ModelParameters,
  type Parameter,
  writeWeight,
} from "./parameters.js";
import { RopeTable } from "./rope-table.js";
import { readSafetensors, type TensorSource } from "./safetensors.js";
import { runTriePass } from "./trie-pass.js";
import { expectSameModel, expectTensors, loadOptimiser, readWeightsInOrder } from "./weights.js";
import { Workspace } from "./workspace.js";

/** A policy that can be trained and sampled from. */
export interface ModelPolicy extends TrainablePolicy, DecodablePolicy {
  /** Updates made so far; saved with the optimiser state. */
  readonly step: number;
  /** The same, with the number format of `model.safetensors`; the optimiser state is always f32. */
  save(
    dir: string,
    options: { readonly optimizer: boolean; readonly format?: "F32" | "BF16" },
  ): Promise<void>;
}

class PolicyOverBackend implements ModelPolicy {
  readonly config: ModelConfig;
  readonly backend: Backend;
  readonly parameterCount: number;
  readonly parameters: ModelParameters;
  readonly #configText: string;
  readonly #rope: RopeTable;
  readonly #decodeWorkspace: Workspace;
  #decodeRows = 0;
  #step = 0;

  constructor(config: ModelConfig, configText: string, backend: Backend) {
    this.config = config;
    this.backend = backend;
    this.#configText = configText;
    this.parameters = allocateParameters(config, backend);
    this.parameterCount = this.parameters.all.reduce((sum, p) => sum + p.weight.length, 0);
    this.#rope = new RopeTable(config, backend);
    this.#decodeWorkspace = new Workspace(backend);
  }

  get step(): number {
    return this.#step;
  }

  async forward(
    trie: TokenTrie,
    terms: Pick<LossTerms, "rows" | "targetIds">,
    options: { readonly temperature: number; readonly keepForBackward: boolean },
  ): Promise<ForwardPass> {
    const { backend, config } = this;
    const context = { backend, config, workspace: new Workspace(backend) };
    return runTriePass(context, this.parameters, this.#rope, trie, terms, options);
  }

  async update(options: UpdateOptions): Promise<{ readonly gradientNorm: number }> {
    const gradientNorm = await applyUpdate(
      this.backend,
      this.parameters.all,
      this.#step + 1,
      options,
    );
    this.#step += 1;
    return { gradientNorm };
  }

  allocateCaches(slots: number): KeyValueCache[] {
    const shape = attentionShapeOf(this.config);
    return Array.from({ length: this.config.layers }, () =>
      this.backend.allocateCache(slots, shape),
    );
  }

  decode(input: Parameters<DecodablePolicy["decode"]>[0]): Tensor {
    const { backend, config } = this;
    // Buffers are pooled by length: keep them while the batch size stays, drop them when it changes.
    if (this.#decodeRows !== input.tokenIds.length) this.#decodeWorkspace.clear();
    this.#decodeRows = input.tokenIds.length;
    const context = { backend, config, workspace: this.#decodeWorkspace };
    return runDecode(context, this.parameters, this.#rope, input);
  }

  async save(
    dir: string,
    options: { readonly optimizer: boolean; readonly format?: "F32" | "BF16" },
  ): Promise<void> {
    const { saveFolder } = await import("./folder.js");
    await saveFolder(dir, {
      backend: this.backend,
      configText: this.#configText,
      parameters: this.parameters.all,
      step: this.#step,
      format: options.format ?? "F32",
      optimizer: options.optimizer,
    });
  }

  async load(dir: string, options: { readonly optimizer: boolean }): Promise<void> {
    const { openFolder } = await import("./folder.js");
    const folder = await openFolder(dir, options);
    try {
      expectSameModel(this.config, parseModelConfig(folder.configText, dir), dir);
      await this.adopt(folder.weights, folder.optimizer, { staged: true });
    } finally {
      await folder.close();
    }
  }

  /**
   * Replaces weights and optimiser state from open sources.
   * @param staged - read and check everything before anything is written; else one tensor at a time, which needs
   * no second copy of the model and is for a policy that is dropped on failure.
   */
  async adopt(
    weights: TensorSource,
    optimizer: TensorSource | null,
    options: { readonly staged: boolean },
  ): Promise<void> {
    const { all } = this.parameters;
    expectTensors(weights, all, this.config);
    const state = optimizer === null ? null : await loadOptimiser(optimizer, weights, all);
    const staged: (readonly [Parameter, Float32Array])[] = [];
    for await (const entry of readWeightsInOrder(weights, all)) {
      if (options.staged) staged.push(entry);
      else writeWeight(this.backend, ...entry);
    }
    for (const parameter of all) this.#reset(parameter);
    for (const entry of staged) writeWeight(this.backend, ...entry);
    state?.moments.forEach(({ first, second }, i) => {
      const parameter = all[i];
      parameter.firstMoment = this.backend.allocate(first.length);
      parameter.secondMoment = this.backend.allocate(second.length);
      this.backend.write(parameter.firstMoment, first);
      this.backend.write(parameter.secondMoment, second);
    });
    this.#step = state?.step ?? 0;
  }

  #reset(parameter: Parameter): void {
    if (parameter.gradient !== null) this.backend.fill(parameter.gradient, 0);
    if (parameter.firstMoment !== null) this.backend.free(parameter.firstMoment);
    if (parameter.secondMoment !== null) this.backend.free(parameter.secondMoment);
    parameter.firstMoment = null;
    parameter.secondMoment = null;
  }

  async readGradients(): Promise<Map<string, Float32Array>> {
    const gradients = new Map<string, Float32Array>();
    for (const parameter of this.parameters.all)
      gradients.set(
        parameter.spec.name,
        await this.backend.read(gradientOf(this.backend, parameter)),
      );
    return gradients;
  }

  async readWeights(): Promise<Map<string, Float32Array>> {
    const weights = new Map<string, Float32Array>();
    for (const { spec, weight } of this.parameters.all)
      weights.set(spec.name, await this.backend.read(weight));
    return weights;
  }

  /** Frees the policy's buffers; the backend stays the caller's. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#rope.free();
    this.#decodeWorkspace.clear();
    for (const parameter of this.parameters.all) {
      this.#reset(parameter);
      if (parameter.gradient !== null) this.backend.free(parameter.gradient);
      this.backend.free(parameter.weight);
    }
    return Promise.resolve();
  }
}

/** Options of {@link createPolicy}. */
export interface CreatePolicyOptions {
  /** Standard deviation of the initial embeddings. Default 0.02; about 1/sqrt(width) lets very small models find
   * copying sooner, because a token's identity is then not drowned in the residual stream. */
  readonly embeddingDeviation?: number;
}

/**
 * Creates a policy with seeded initial weights. The backend stays the caller's.
 * @throws {GimbalError} `model-invalid` for impossible shapes.
 */
export function createPolicy(
  config: ModelConfig,
  backend: Backend,
  seed: number,
  options: CreatePolicyOptions = {},
): ModelPolicy {
  validateModelConfig(config);
  const policy = new PolicyOverBackend(config, modelConfigToJson(config), backend);
  const { embedding } = policy.parameters;
  for (const parameter of policy.parameters.all) {
    const own = parameter === embedding ? options.embeddingDeviation : undefined;
    const spec = own === undefined ? parameter.spec : { ...parameter.spec, initialDeviation: own };
    writeWeight(backend, parameter, initialValues(spec, seed));
  }
  return policy;
}

async function policyFrom(
  configText: string,
  label: string,
  backend: Backend,
  weights: TensorSource,
  optimizer: TensorSource | null,
): Promise<ModelPolicy> {
  const policy = new PolicyOverBackend(parseModelConfig(configText, label), configText, backend);
  try {
    await policy.adopt(weights, optimizer, { staged: false });
  } catch (error) {
    await policy[Symbol.asyncDispose]();
    throw error;
  }
  return policy;
}

/**
 * Loads a Hugging Face model folder (`config.json`, `model.safetensors` or shards) in f32.
 * @param options - `optimizer` true also loads `optimizer.safetensors` when present.
 * @throws {GimbalError} `model-invalid` when a file is missing, corrupt, or not of a supported model.
 */
export async function loadPolicy(
  dir: string,
  backend: Backend,
  options: { readonly optimizer: boolean } = { optimizer: false },
): Promise<ModelPolicy> {
  const { openFolder } = await import("./folder.js");
  const folder = await openFolder(dir, options);
  try {
    return await policyFrom(folder.configText, dir, backend, folder.weights, folder.optimizer);
  } finally {
    await folder.close();
  }
}

/**
 * Loads a policy from files in memory, for browsers.
 * @throws {GimbalError} `model-invalid`.
 */
export async function loadPolicyFromBytes(
  files: { readonly config: string; readonly weights: Uint8Array },
  backend: Backend,
): Promise<ModelPolicy> {
  const weights = readSafetensors(files.weights);
  return policyFrom(files.config, "config.json", backend, weights, null);
}
