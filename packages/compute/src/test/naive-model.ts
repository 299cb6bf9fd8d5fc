/**
 * A whole Qwen3 or Llama forward pass in f64 on one plain sequence: the formula the models are tested against.
 */
import type { ModelConfig } from "../policy.js";
import { naiveAttention, naiveLinear, naiveRmsNorm, naiveRope, naiveSwiglu } from "./naive.js";

/** Weights by Hugging Face name, in f64. */
export type NaiveWeights = ReadonlyMap<string, Float64Array>;

/** Rotary table in f64; with Llama 3's stretching (Transformers' `_compute_llama3_parameters`) when configured. */
function naiveTable(config: ModelConfig, positions: number): Float64Array {
  const { headWidth, ropeTheta, ropeScaling } = config;
  const half = headWidth / 2;
  const table = new Float64Array(positions * headWidth);
  for (let i = 0; i < half; i += 1) {
    let frequency = ropeTheta ** ((-2 * i) / headWidth);
    if (ropeScaling !== undefined) {
      const { factor, lowFrequencyFactor, highFrequencyFactor, originalMaxPositions } = ropeScaling;
      const wavelength = (2 * Math.PI) / frequency;
      if (wavelength > originalMaxPositions / lowFrequencyFactor) {
        frequency /= factor;
      } else if (wavelength > originalMaxPositions / highFrequencyFactor) {
        const smooth =
          (originalMaxPositions / wavelength - lowFrequencyFactor) /
          (highFrequencyFactor - lowFrequencyFactor);
        frequency = ((1 - smooth) * frequency) / factor + smooth * frequency;
      }
    }
    for (let p = 0; p < positions; p += 1) {
      table[p * headWidth + i] = Math.cos(p * frequency);
      table[p * headWidth + half + i] = Math.sin(p * frequency);
    }
  }
  return table;
}

function weightOf(weights: NaiveWeights, name: string): Float64Array {
  const weight = weights.get(name);
  if (weight === undefined) throw new Error(`no weight ${name}`);
  return weight;
}

const add = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, i) => value + b[i]);

/** Logits [T, V] of one sequence of T ids. */
export function naiveModelLogits(
  config: ModelConfig,
  weights: NaiveWeights,
  ids: readonly number[],
): Float64Array {
  const { width, heads, keyValueHeads, headWidth, intermediateWidth, normEpsilon } = config;
  const positions = ids.map((_, position) => position);
  const table = naiveTable(config, ids.length);
  const visible = positions.map((position) => positions.slice(0, position + 1));
  const embedding = weightOf(weights, "model.embed_tokens.weight");
  let x = new Float64Array(ids.length * width);
  ids.forEach((id, t) => {
    x.set(embedding.subarray(id * width, (id + 1) * width), t * width);
  });
  const norm = (values: Float64Array, name: string) =>
    naiveRmsNorm(values, weightOf(weights, `${name}.weight`), normEpsilon);
  for (let i = 0; i < config.layers; i += 1) {
    const layer = `model.layers.${i}`;
    const linear = (values: Float64Array, name: string, outputs: number, inputs: number) =>
      naiveLinear(values, weightOf(weights, `${layer}.${name}.weight`), outputs, inputs);
    const normed = norm(x, `${layer}.input_layernorm`);
    const turned = (name: string, count: number) => {
      const projected = linear(normed, `self_attn.${name}_proj`, count * headWidth, width);
      const ready =
        config.architecture === "qwen3"
          ? norm(projected, `${layer}.self_attn.${name}_norm`)
          : projected;
      return naiveRope(ready, positions, table, count, headWidth);
    };
    const { out } = naiveAttention(
      turned("q", heads),
      turned("k", keyValueHeads),
      linear(normed, "self_attn.v_proj", keyValueHeads * headWidth, width),
      visible,
      config,
    );
    const middle = add(x, linear(out, "self_attn.o_proj", width, heads * headWidth));
    const again = norm(middle, `${layer}.post_attention_layernorm`);
    const gated = naiveSwiglu(
      linear(again, "mlp.gate_proj", intermediateWidth, width),
      linear(again, "mlp.up_proj", intermediateWidth, width),
    );
    x = new Float64Array(add(middle, linear(gated, "mlp.down_proj", width, intermediateWidth)));
  }
  const head = config.tiedEmbeddings ? embedding : weightOf(weights, "lm_head.weight");
  return naiveLinear(norm(x, "model.norm"), head, config.vocabularySize, width);
}
