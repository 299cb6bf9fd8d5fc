/**
 * Hugging Face `config.json` to ModelConfig and back.
 *
 * Law: whatever would change the forward pass and is not supported is refused by name; nothing is guessed.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { Llama3RopeScaling, ModelConfig } from "../policy.js";

type Json = Readonly<Record<string, unknown>>;

/** An error about model files; `label` names the file. */
export function modelInvalid(label: string, message: string, cause?: unknown): GimbalError {
  return new GimbalError("model-invalid", `${label}: ${message}`, {
    boundary: "compute",
    ...(cause === undefined ? {} : { cause }),
  });
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Parses JSON text that must be an object. @throws {GimbalError} `model-invalid`. */
export function parseJsonObject(text: string, label: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw modelInvalid(label, "found text that is not JSON; download the file again.", error);
  }
  if (!isObject(value)) throw modelInvalid(label, "expected a JSON object.");
  return value;
}

function createReader(source: Json, label: string) {
  const number = (key: string, fallback?: number): number => {
    const value = source[key] ?? fallback;
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0) {
      throw modelInvalid(
        label,
        `found ${key} = ${JSON.stringify(source[key])}; expected a positive number.`,
      );
    }
    return value;
  };
  const integer = (key: string, fallback?: number): number => {
    const value = number(key, fallback);
    if (!Number.isInteger(value))
      throw modelInvalid(label, `found ${key} = ${value}; expected an integer.`);
    return value;
  };
  return { number, integer };
}

function refuseUnsupported(source: Json, label: string): void {
  const refuse = (key: string, expected: string): never => {
    throw modelInvalid(
      label,
      `found ${key} = ${JSON.stringify(source[key])}; supported is ${expected}. Use another model.`,
    );
  };
  for (const key of ["attention_bias", "mlp_bias", "use_sliding_window"]) {
    if (source[key] !== undefined && source[key] !== null && source[key] !== false)
      refuse(key, "false");
  }
  if ((source.hidden_act ?? "silu") !== "silu") refuse("hidden_act", '"silu"');
  if (source.quantization_config !== undefined && source.quantization_config !== null)
    refuse("quantization_config", "none (f32, bf16 or f16 weights)");
  const types = source.layer_types;
  if (Array.isArray(types) && types.some((type) => type !== "full_attention"))
    refuse("layer_types", '"full_attention" in every layer');
}

function parseRope(
  source: Json,
  label: string,
): { readonly ropeTheta: number; readonly ropeScaling?: Llama3RopeScaling } {
  // Transformers 5 writes `rope_parameters` with the base inside; before, `rope_theta` and `rope_scaling`.
  const parameters = isObject(source.rope_parameters) ? source.rope_parameters : undefined;
  const scaling = parameters ?? (isObject(source.rope_scaling) ? source.rope_scaling : undefined);
  const ropeTheta = createReader(parameters ?? source, label).number(
    "rope_theta",
    typeof source.rope_theta === "number" ? source.rope_theta : 10_000,
  );
  const type = scaling?.rope_type ?? scaling?.type ?? "default";
  if (scaling === undefined || type === "default") return { ropeTheta };
  if (type !== "llama3") {
    throw modelInvalid(
      label,
      `found rope scaling ${JSON.stringify(type)}; supported are "default" and "llama3". Use another model.`,
    );
  }
  const read = createReader(scaling, label);
  return {
    ropeTheta,
    ropeScaling: {
      factor: read.number("factor"),
      lowFrequencyFactor: read.number("low_freq_factor"),
      highFrequencyFactor: read.number("high_freq_factor"),
      originalMaxPositions: read.integer("original_max_position_embeddings"),
    },
  };
}

/**
 * Checks that head counts and widths fit each other.
 * @throws {GimbalError} `model-invalid`.
 */
export function validateModelConfig(config: ModelConfig, label = "model config"): void {
  if (config.heads % config.keyValueHeads !== 0) {
    throw modelInvalid(
      label,
      `found ${config.heads} heads and ${config.keyValueHeads} key/value heads; expected a multiple.`,
    );
  }
  if (config.headWidth % 2 !== 0)
    throw modelInvalid(label, `found head width ${config.headWidth}; expected an even number.`);
}

/**
 * Reads the text of a `config.json` of the Qwen3 dense or Llama family.
 *
 * @param label - names the file in errors.
 * @throws {GimbalError} `model-invalid` for other families, unsupported features and impossible shapes.
 */
export function parseModelConfig(text: string, label = "config.json"): ModelConfig {
  const source = parseJsonObject(text, label);
  const family = source.model_type;
  if (family !== "qwen3" && family !== "llama") {
    throw modelInvalid(
      label,
      `found model_type ${JSON.stringify(family)}; supported are "qwen3" and "llama". Use another model.`,
    );
  }
  refuseUnsupported(source, label);
  const { number, integer } = createReader(source, label);
  const width = integer("hidden_size");
  const heads = integer("num_attention_heads");
  const config: ModelConfig = {
    architecture: family,
    vocabularySize: integer("vocab_size"),
    width,
    intermediateWidth: integer("intermediate_size"),
    layers: integer("num_hidden_layers"),
    heads,
    keyValueHeads: integer("num_key_value_heads", heads),
    headWidth: integer("head_dim", family === "qwen3" ? 128 : width / heads),
    normEpsilon: number("rms_norm_eps", 1e-6),
    ...parseRope(source, label),
    maxPositions: integer("max_position_embeddings"),
    tiedEmbeddings: source.tie_word_embeddings === true,
  };
  validateModelConfig(config, label);
  return config;
}

/** Writes a ModelConfig as the text of a Hugging Face `config.json` for f32 weights. */
export function modelConfigToJson(config: ModelConfig): string {
  const scaling = config.ropeScaling;
  const json = {
    architectures: [config.architecture === "qwen3" ? "Qwen3ForCausalLM" : "LlamaForCausalLM"],
    attention_bias: false,
    head_dim: config.headWidth,
    hidden_act: "silu",
    hidden_size: config.width,
    intermediate_size: config.intermediateWidth,
    max_position_embeddings: config.maxPositions,
    model_type: config.architecture,
    num_attention_heads: config.heads,
    num_hidden_layers: config.layers,
    num_key_value_heads: config.keyValueHeads,
    rms_norm_eps: config.normEpsilon,
    rope_scaling:
      scaling === undefined
        ? null
        : {
            rope_type: "llama3",
            factor: scaling.factor,
            low_freq_factor: scaling.lowFrequencyFactor,
            high_freq_factor: scaling.highFrequencyFactor,
            original_max_position_embeddings: scaling.originalMaxPositions,
          },
    rope_theta: config.ropeTheta,
    tie_word_embeddings: config.tiedEmbeddings,
    torch_dtype: "float32",
    vocab_size: config.vocabularySize,
  };
  return `${JSON.stringify(json, null, 2)}\n`;
}
