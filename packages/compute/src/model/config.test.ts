import { GimbalError } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { modelConfigToJson, parseModelConfig } from "./config.js";
import { rotaryFrequencies } from "./rope-table.js";

/** Qwen/Qwen3-0.6B as on the Hugging Face hub, the parts a reader needs. */
const qwen3 = {
  architectures: ["Qwen3ForCausalLM"],
  attention_bias: false,
  attention_dropout: 0.0,
  bos_token_id: 151643,
  eos_token_id: 151645,
  head_dim: 128,
  hidden_act: "silu",
  hidden_size: 1024,
  initializer_range: 0.02,
  intermediate_size: 3072,
  max_position_embeddings: 40960,
  max_window_layers: 28,
  model_type: "qwen3",
  num_attention_heads: 16,
  num_hidden_layers: 28,
  num_key_value_heads: 8,
  rms_norm_eps: 1e-6,
  rope_scaling: null,
  rope_theta: 1000000,
  sliding_window: null,
  tie_word_embeddings: true,
  torch_dtype: "bfloat16",
  use_cache: true,
  use_sliding_window: false,
  vocab_size: 151936,
};

/** meta-llama/Llama-3.2-1B as on the Hugging Face hub, the parts a reader needs. */
const llama = {
  model_type: "llama",
  attention_bias: false,
  head_dim: 64,
  hidden_act: "silu",
  hidden_size: 2048,
  intermediate_size: 8192,
  max_position_embeddings: 131072,
  mlp_bias: false,
  num_attention_heads: 32,
  num_hidden_layers: 16,
  num_key_value_heads: 8,
  pretraining_tp: 1,
  rms_norm_eps: 1e-5,
  rope_scaling: {
    factor: 32,
    high_freq_factor: 4,
    low_freq_factor: 1,
    original_max_position_embeddings: 8192,
    rope_type: "llama3",
  },
  rope_theta: 500000,
  tie_word_embeddings: true,
  vocab_size: 128256,
};

function messageOf(change: Readonly<Record<string, unknown>>): string {
  try {
    parseModelConfig(JSON.stringify({ ...qwen3, ...change }));
  } catch (error) {
    if (GimbalError.is(error) && error.code === "model-invalid") return error.message;
  }
  return "accepted";
}

describe("config.json", () => {
  it("of Qwen3-0.6B is read", () => {
    expect(parseModelConfig(JSON.stringify(qwen3))).toEqual({
      architecture: "qwen3",
      vocabularySize: 151936,
      width: 1024,
      intermediateWidth: 3072,
      layers: 28,
      heads: 16,
      keyValueHeads: 8,
      headWidth: 128,
      normEpsilon: 1e-6,
      ropeTheta: 1e6,
      maxPositions: 40960,
      tiedEmbeddings: true,
    });
  });

  it("of Llama 3.2 is read with its rope scaling", () => {
    const config = parseModelConfig(JSON.stringify(llama));
    expect(config.ropeScaling).toEqual({
      factor: 32,
      lowFrequencyFactor: 1,
      highFrequencyFactor: 4,
      originalMaxPositions: 8192,
    });
    // Short wavelengths are kept, long ones stretched by the factor.
    const frequencies = rotaryFrequencies(config);
    expect(frequencies[0]).toBe(1);
    expect(frequencies[31]).toBeCloseTo(500000 ** (-62 / 64) / 32, 12);
  });

  it("written by Transformers 5 is read with its rope parameters", () => {
    const { rope_theta: _theta, rope_scaling: _scaling, ...rest } = qwen3;
    const config = parseModelConfig(
      JSON.stringify({ ...rest, rope_parameters: { rope_type: "default", rope_theta: 5e6 } }),
    );
    expect(config.ropeTheta).toBe(5e6);
    expect(config.ropeScaling).toBeUndefined();
  });

  it("written from a config reads back the same", () => {
    for (const source of [qwen3, llama]) {
      const config = parseModelConfig(JSON.stringify(source));
      expect(parseModelConfig(modelConfigToJson(config))).toEqual(config);
    }
  });

  it.each([
    [{ model_type: "gpt2" }, /found model_type "gpt2"; supported are "qwen3" and "llama"/],
    [{ attention_bias: true }, /attention_bias = true; supported is false/],
    [{ hidden_act: "gelu" }, /hidden_act = "gelu"/],
    [{ use_sliding_window: true }, /use_sliding_window/],
    [{ layer_types: ["full_attention", "sliding_attention"] }, /layer_types/],
    [{ quantization_config: { bits: 4 } }, /quantization_config/],
    [{ rope_scaling: { rope_type: "yarn", factor: 4 } }, /rope scaling "yarn"/],
    [{ hidden_size: "big" }, /hidden_size = "big"; expected a positive number/],
    [{ num_hidden_layers: 1.5 }, /num_hidden_layers = 1.5; expected an integer/],
    [{ num_key_value_heads: 5 }, /16 heads and 5 key\/value heads; expected a multiple/],
    [{ head_dim: 7 }, /head width 7; expected an even number/],
  ])("with %j is refused by name, in one line", (change, message) => {
    expect(messageOf(change)).toMatch(message);
    expect(messageOf(change)).not.toContain("\n");
  });

  it("that is no JSON object is refused", () => {
    expect(() => parseModelConfig("{", "x/config.json")).toThrowError(/x\/config.json: found text/);
    expect(() => parseModelConfig("[]")).toThrowError(/expected a JSON object/);
  });
});
