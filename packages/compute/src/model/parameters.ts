/**
 * The parameters of a model by their Hugging Face names: shapes, weights, gradients, optimiser moments.
 *
 * Law: the order of parameters is fixed by the config; initial values depend only on seed, name and shape.
 */
import { createRandom, hashToSeed } from "@gimbal-rl/core";
import type { Backend, Tensor } from "../backend.js";
import type { ModelConfig } from "../policy.js";

/** Name, shape and role of one parameter. */
export interface ParameterSpec {
  readonly name: string;
  readonly shape: readonly number[];
  readonly kind: "embedding" | "linear" | "norm";
  /** Standard deviation of the initial values; null = all ones. */
  readonly initialDeviation: number | null;
}

/** Buffers of one parameter. Gradient and moments exist once they are needed. */
export interface Parameter {
  readonly spec: ParameterSpec;
  readonly weight: Tensor;
  gradient: Tensor | null;
  firstMoment: Tensor | null;
  secondMoment: Tensor | null;
}

/** Parameters of one transformer layer; the head norms exist in Qwen3 only. */
export interface LayerParameters {
  readonly inputNorm: Parameter;
  readonly query: Parameter;
  readonly key: Parameter;
  readonly value: Parameter;
  readonly queryNorm: Parameter | null;
  readonly keyNorm: Parameter | null;
  readonly output: Parameter;
  readonly middleNorm: Parameter;
  readonly gate: Parameter;
  readonly up: Parameter;
  readonly down: Parameter;
}

/** All parameters of a model. With tied embeddings `head` is `embedding`. */
export interface ModelParameters {
  readonly all: readonly Parameter[];
  readonly embedding: Parameter;
  readonly layers: readonly LayerParameters[];
  readonly finalNorm: Parameter;
  readonly head: Parameter;
}

/**
 * Allocates the parameters of a model, weights zero.
 *
 * Initial deviations: 0.02 for embeddings (logits start small), 1 / sqrt(inputs) for linear layers (keeps the scale of
 * a unit-norm input), and a further 1 / sqrt(2 layers) for the two that write into the residual stream.
 */
export function allocateParameters(config: ModelConfig, backend: Backend): ModelParameters {
  const { width, heads, keyValueHeads, headWidth, intermediateWidth, vocabularySize } = config;
  const all: Parameter[] = [];
  const add = (
    name: string,
    shape: readonly number[],
    kind: ParameterSpec["kind"],
    initialDeviation: number | null,
  ): Parameter => {
    const length = shape.reduce((product, n) => product * n, 1);
    const parameter: Parameter = {
      spec: { name, shape, kind, initialDeviation },
      weight: backend.allocate(length),
      gradient: null,
      firstMoment: null,
      secondMoment: null,
    };
    all.push(parameter);
    return parameter;
  };
  const norm = (name: string, size: number) => add(`${name}.weight`, [size], "norm", null);
  const linear = (name: string, outputs: number, inputs: number, residual = false) =>
    add(
      `${name}.weight`,
      [outputs, inputs],
      "linear",
      1 / Math.sqrt(inputs * (residual ? 2 * config.layers : 1)),
    );
  const embedding = add(
    "model.embed_tokens.weight",
    [vocabularySize, width],
    config.tiedEmbeddings ? "linear" : "embedding",
    0.02,
  );
  const layers: LayerParameters[] = [];
  for (let i = 0; i < config.layers; i += 1) {
    const prefix = `model.layers.${i}`;
    const attention = `${prefix}.self_attn`;
    const headNorms = config.architecture === "qwen3";
    layers.push({
      inputNorm: norm(`${prefix}.input_layernorm`, width),
      query: linear(`${attention}.q_proj`, heads * headWidth, width),
      key: linear(`${attention}.k_proj`, keyValueHeads * headWidth, width),
      value: linear(`${attention}.v_proj`, keyValueHeads * headWidth, width),
      queryNorm: headNorms ? norm(`${attention}.q_norm`, headWidth) : null,
      keyNorm: headNorms ? norm(`${attention}.k_norm`, headWidth) : null,
      output: linear(`${attention}.o_proj`, width, heads * headWidth, true),
      middleNorm: norm(`${prefix}.post_attention_layernorm`, width),
      gate: linear(`${prefix}.mlp.gate_proj`, intermediateWidth, width),
      up: linear(`${prefix}.mlp.up_proj`, intermediateWidth, width),
      down: linear(`${prefix}.mlp.down_proj`, width, intermediateWidth, true),
    });
  }
  const finalNorm = norm("model.norm", width);
  const head = config.tiedEmbeddings
    ? embedding
    : add("lm_head.weight", [vocabularySize, width], "linear", 0.02);
  return { all, embedding, layers, finalNorm, head };
}

/** Uploads new weights of one parameter and refreshes packed copies. */
export function writeWeight(backend: Backend, parameter: Parameter, values: Float32Array): void {
  backend.write(parameter.weight, values);
  refreshParameter(backend, parameter);
}

/** Tells the backend that a linear weight changed. */
export function refreshParameter(backend: Backend, { spec, weight }: Parameter): void {
  if (spec.kind === "linear") backend.refreshWeight(weight, spec.shape[0], spec.shape[1]);
}

/** Seeded initial values: normal with the spec's deviation (Box-Muller), or ones. */
export function initialValues(spec: ParameterSpec, seed: number): Float32Array {
  const values = new Float32Array(spec.shape.reduce((product, n) => product * n, 1));
  if (spec.initialDeviation === null) return values.fill(1);
  const random = createRandom(hashToSeed(seed, spec.name));
  for (let i = 0; i < values.length; i += 2) {
    const radius = spec.initialDeviation * Math.sqrt(-2 * Math.log(1 - random.next()));
    const angle = 2 * Math.PI * random.next();
    values[i] = radius * Math.cos(angle);
    if (i + 1 < values.length) values[i + 1] = radius * Math.sin(angle);
  }
  return values;
}

/** The gradient buffer of a parameter, allocated (zero) on first use. */
export function gradientOf(backend: Backend, parameter: Parameter): Tensor {
  parameter.gradient ??= backend.allocate(parameter.weight.length);
  return parameter.gradient;
}
