/**
 * The operations and a whole model in jax-js: an independent oracle with automatic differentiation.
 * jax-js arrays are owned: an operation consumes its inputs, `.ref` keeps them.
 */
import { nn, numpy as np, tree } from "@jax-js/jax";
import type { ModelConfig } from "../src/index.js";

export type JaxArray = np.Array;

/** An f32 array from numbers. */
export function jaxArray(values: ArrayLike<number>, shape: readonly number[]): JaxArray {
  return np.array(Float32Array.from(values), { shape: [...shape] });
}

/** x * weight / sqrt(mean(x^2) + epsilon) over the last axis. */
export function jaxRmsNorm(x: JaxArray, weight: JaxArray, epsilon: number): JaxArray {
  const meanSquare = np.mean(x.ref.mul(x.ref), -1, { keepdims: true });
  return x.div(np.sqrt(meanSquare.add(epsilon))).mul(weight);
}

/** silu(gate) * up. */
export function jaxSwiglu(gate: JaxArray, up: JaxArray): JaxArray {
  return nn.silu(gate).mul(up);
}

/** Causal attention; q [T, H, E], k and v [T, G, E]. No einsum: jax-js parses it with methods Node 20 lacks. */
export function jaxAttention(q: JaxArray, k: JaxArray, v: JaxArray): JaxArray {
  const group = q.shape[1] / k.shape[1];
  const [T, , E] = q.shape;
  const queries = np.transpose(q, [1, 0, 2]);
  const keys = np.transpose(np.repeat(k, group, 1), [1, 2, 0]);
  const values = np.transpose(np.repeat(v, group, 1), [1, 0, 2]);
  const scores = np.matmul(queries, keys).mul(1 / Math.sqrt(E));
  const mask = np
    .tril(np.ones([T, T]))
    .sub(1)
    .mul(1e9);
  const mixed = np.matmul(nn.softmax(scores.add(mask), -1), values);
  return np.transpose(mixed, [1, 0, 2]);
}

/** sum over rows of gradient[t] * log softmax(logits / temperature)[t, target[t]]. */
export function jaxTermSum(
  logits: JaxArray,
  targets: readonly number[],
  gradients: ArrayLike<number>,
  temperature: number,
): JaxArray {
  const vocabulary = logits.shape[1];
  const chosen = new Float32Array(targets.length * vocabulary);
  targets.forEach((target, t) => {
    chosen[t * vocabulary + target] = gradients[t];
  });
  const logprobs = nn.logSoftmax(logits.mul(1 / temperature), -1);
  return np.sum(logprobs.mul(jaxArray(chosen, [targets.length, vocabulary])));
}

/** Rotary embedding of x [T, heads, E], half-split. */
function jaxRope(x: JaxArray, theta: number): JaxArray {
  const [T, , E] = x.shape;
  const half = E / 2;
  const cos = new Float32Array(T * E);
  const sin = new Float32Array(T * E);
  for (let t = 0; t < T; t += 1) {
    for (let e = 0; e < E; e += 1) {
      const angle = t * theta ** ((-2 * (e % half)) / E);
      cos[t * E + e] = Math.cos(angle);
      sin[t * E + e] = e < half ? -Math.sin(angle) : Math.sin(angle);
    }
  }
  // (a, b) -> (b, a): rolling by half a head swaps the halves.
  const swapped = np.roll(x.ref, half, -1);
  return x.mul(jaxArray(cos, [T, 1, E])).add(swapped.mul(jaxArray(sin, [T, 1, E])));
}

/** Logits [T, V] of one sequence; `weights` by Hugging Face name, consumed. */
export function jaxModelLogits(
  config: ModelConfig,
  weights: Record<string, JaxArray>,
  ids: readonly number[],
): JaxArray {
  const { heads, keyValueHeads, headWidth, normEpsilon, vocabularySize } = config;
  const T = ids.length;
  const w = (name: string): JaxArray => weights[`${name}.weight`].ref;
  const linear = (x: JaxArray, name: string) => np.matmul(x, np.transpose(w(name)));
  const oneHot = new Float32Array(T * vocabularySize);
  ids.forEach((id, t) => {
    oneHot[t * vocabularySize + id] = 1;
  });
  let x = np.matmul(jaxArray(oneHot, [T, vocabularySize]), w("model.embed_tokens"));
  for (let i = 0; i < config.layers; i += 1) {
    const layer = `model.layers.${i}`;
    const normed = jaxRmsNorm(x.ref, w(`${layer}.input_layernorm`), normEpsilon);
    const split = (name: string, count: number) =>
      linear(normed.ref, `${layer}.self_attn.${name}_proj`).reshape([T, count, headWidth]);
    const turn = (name: string, count: number) => {
      const projected = split(name, count);
      const ready =
        config.architecture === "qwen3"
          ? jaxRmsNorm(projected, w(`${layer}.self_attn.${name}_norm`), normEpsilon)
          : projected;
      return jaxRope(ready, config.ropeTheta);
    };
    const out = jaxAttention(turn("q", heads), turn("k", keyValueHeads), split("v", keyValueHeads));
    normed.dispose();
    x = x.add(linear(out.reshape([T, heads * headWidth]), `${layer}.self_attn.o_proj`));
    const again = jaxRmsNorm(x.ref, w(`${layer}.post_attention_layernorm`), normEpsilon);
    const gate = linear(again.ref, `${layer}.mlp.gate_proj`);
    const gated = jaxSwiglu(gate, linear(again, `${layer}.mlp.up_proj`));
    x = x.add(linear(gated, `${layer}.mlp.down_proj`));
  }
  const final = jaxRmsNorm(x, w("model.norm"), normEpsilon);
  const logits = linear(final, config.tiedEmbeddings ? "model.embed_tokens" : "lm_head");
  tree.dispose(weights);
  return logits;
}
