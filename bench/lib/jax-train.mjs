/**
 * The bench model in jax-js: Qwen3-like, tied embeddings, forward, backward and AdamW in one jitted step.
 * jax-js arrays are owned: an operation consumes its inputs, `.ref` keeps them.
 */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(new URL("../../packages/compute/package.json", import.meta.url));
const jax = await import(pathToFileURL(require.resolve("@jax-js/jax")).href.replace(/cjs$/, "js"));
const { numpy: np, nn, tree, jit, valueAndGrad } = jax;

/** Starts jax-js on its WASM backend. */
export async function startJax() {
  await jax.init("wasm");
  jax.defaultDevice("wasm");
}

const rmsNorm = (x, weight, epsilon) => {
  const meanSquare = np.mean(x.ref.mul(x.ref), -1, { keepdims: true });
  return x.div(np.sqrt(meanSquare.add(epsilon))).mul(weight);
};

function rotary(length, width, theta) {
  const half = width / 2;
  const cos = new Float32Array(length * width);
  const sin = new Float32Array(length * width);
  for (let t = 0; t < length; t += 1) {
    for (let e = 0; e < width; e += 1) {
      const angle = t * theta ** ((-2 * (e % half)) / width);
      cos[t * width + e] = Math.cos(angle);
      sin[t * width + e] = e < half ? -Math.sin(angle) : Math.sin(angle);
    }
  }
  return { cos, sin };
}

/** Minus the mean log-probability of `targets` [B, T] given `ids` [B, T]. */
function lossOf(config, B, T) {
  const { heads: H, keyValueHeads: G, headWidth: E, normEpsilon: epsilon, width: D } = config;
  const { cos, sin } = rotary(T, E, config.ropeTheta);
  const future = new Float32Array(T * T);
  for (let i = 0; i < T; i += 1) for (let j = i + 1; j < T; j += 1) future[i * T + j] = -1e9;
  const constant = (values, shape) => np.array(values.slice(), { shape });
  const rope = (x) => {
    const swapped = np.roll(x.ref, E / 2, -1);
    const turned = swapped.mul(constant(sin, [T, 1, E]));
    return x.mul(constant(cos, [T, 1, E])).add(turned);
  };
  const oneHot = (ids) => nn.oneHot(ids.reshape([B * T]), config.vocabularySize);
  return (weights, ids, targets) => {
    const w = (name) => weights[`${name}.weight`].ref;
    const linear = (x, name) => np.matmul(x, np.transpose(w(name)));
    // jit refuses the gradient of a gather in 0.1.25 ("scatter input is not imm"), so rows are chosen by a product.
    let x = np.matmul(oneHot(ids), w("model.embed_tokens"));
    for (let i = 0; i < config.layers; i += 1) {
      const layer = `model.layers.${i}`;
      const normed = rmsNorm(x.ref, w(`${layer}.input_layernorm`), epsilon);
      const part = (name, count) =>
        linear(normed.ref, `${layer}.self_attn.${name}_proj`).reshape([B, T, count, E]);
      const turned = (name, count) =>
        rope(rmsNorm(part(name, count), w(`${layer}.self_attn.${name}_norm`), epsilon));
      const spread = (t) => (G === H ? t : np.repeat(t, H / G, 2));
      const q = np.transpose(turned("q", H), [0, 2, 1, 3]);
      const k = np.transpose(spread(turned("k", G)), [0, 2, 3, 1]);
      const v = np.transpose(spread(part("v", G)), [0, 2, 1, 3]);
      normed.dispose();
      const scores = np
        .matmul(q, k)
        .mul(1 / Math.sqrt(E))
        .add(constant(future, [T, T]));
      const mixed = np.matmul(nn.softmax(scores, -1), v);
      const joined = np.transpose(mixed, [0, 2, 1, 3]).reshape([B * T, H * E]);
      x = x.add(linear(joined, `${layer}.self_attn.o_proj`));
      const again = rmsNorm(x.ref, w(`${layer}.post_attention_layernorm`), epsilon);
      const gate = nn.silu(linear(again.ref, `${layer}.mlp.gate_proj`));
      const up = linear(again, `${layer}.mlp.up_proj`);
      x = x.add(linear(gate.mul(up), `${layer}.mlp.down_proj`));
    }
    const final = rmsNorm(x.reshape([B * T, D]), w("model.norm"), epsilon);
    const logprobs = nn.logSoftmax(linear(final, "model.embed_tokens"), -1);
    tree.dispose(weights);
    return np.sum(logprobs.mul(oneHot(targets))).mul(-1 / (B * T));
  };
}

/** A trainer whose `step(ids, targets)` returns the loss before the update. `weights` by Hugging Face name. */
export function createJaxTrainer(config, weights, shapes, B, T, learningRate) {
  const names = [...weights.keys()];
  const build = (make) => Object.fromEntries(names.map((name) => [name, make(name)]));
  let state = {
    weights: build((name) => np.array(weights.get(name).slice(), { shape: shapes.get(name) })),
    first: build((name) => np.zeros(shapes.get(name))),
    second: build((name) => np.zeros(shapes.get(name))),
  };
  const loss = lossOf(config, B, T);
  const [beta1, beta2, epsilon] = [0.9, 0.95, 1e-8];
  const step = jit((current, ids, targets, correct1, correct2) => {
    const [value, gradients] = valueAndGrad(loss)(tree.ref(current.weights), ids, targets);
    const next = { weights: {}, first: {}, second: {} };
    for (const name of names) {
      const g = gradients[name];
      const m = current.first[name].mul(beta1).add(g.ref.mul(1 - beta1));
      const v = current.second[name].mul(beta2).add(g.ref.mul(g).mul(1 - beta2));
      const update = m.ref.mul(correct1.ref).div(np.sqrt(v.ref.mul(correct2.ref)).add(epsilon));
      next.weights[name] = current.weights[name].sub(update.mul(learningRate));
      next.first[name] = m;
      next.second[name] = v;
    }
    correct1.dispose();
    correct2.dispose();
    return [value, next];
  });
  let count = 0;
  return {
    async step(ids, targets) {
      count += 1;
      const ints = (values) => np.array(values.slice(), { shape: [B, T], dtype: np.int32 });
      const [value, next] = step(
        state,
        ints(ids),
        ints(targets),
        np.array(1 / (1 - beta1 ** count)),
        np.array(1 / (1 - beta2 ** count)),
      );
      state = next;
      await jax.blockUntilReady(next.weights["model.norm.weight"].ref);
      await jax.blockUntilReady(tree.ref(next));
      return (await value.data())[0];
    },
  };
}
