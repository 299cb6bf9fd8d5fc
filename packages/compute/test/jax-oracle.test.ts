/**
 * The reference backend and the model against jax-js (its own kernels and automatic differentiation, f32).
 */
import { defaultDevice, grad, init, numpy as np, valueAndGrad } from "@jax-js/jax";
import { beforeAll, describe, expect, it } from "vitest";
import { createPolicy, createReferenceBackend, type ModelConfig } from "../src/index.js";
import { randomFloats, randomInts, relativeDifference } from "../src/test/checks.js";
import { planOf, withBench } from "../src/test/suite-tools.js";
import { buildTrie } from "../src/test/trie-tools.js";
import {
  type JaxArray,
  jaxArray,
  jaxAttention,
  jaxModelLogits,
  jaxRmsNorm,
  jaxSwiglu,
  jaxTermSum,
} from "./jax-model.js";

/** Two f32 implementations: twice the f32 rounding of a chain of a few dozen operations. */
const tolerance = 5e-6;

function expectNear(actual: ArrayLike<number>, expected: ArrayLike<number>): void {
  expect(actual.length).toBe(expected.length);
  expect(relativeDifference(actual, expected).difference).toBeLessThan(tolerance);
}

beforeAll(async () => {
  await init("wasm");
  defaultDevice("wasm");
});

describe("jax-js agrees with the reference backend", () => {
  it("on rmsNorm and its gradients", () =>
    withBench(createReferenceBackend(), async (bench) => {
      const [rows, width] = [7, 20];
      const x = randomFloats(rows * width, "jax x");
      const weight = randomFloats(width, "jax weight");
      const g = randomFloats(rows * width, "jax g");
      const [xs, ws, inverse, out] = [
        bench.floats(x),
        bench.floats(weight),
        bench.zeros(rows),
        bench.zeros(x.length),
      ];
      bench.backend.rmsNorm(out, inverse, xs, ws, width, 1e-5);
      const [gradX, gradW] = [bench.zeros(x.length), bench.zeros(width)];
      bench.backend.rmsNormBackward(gradX, gradW, bench.floats(g), xs, inverse, ws, width);
      const value = jaxRmsNorm(jaxArray(x, [rows, width]), jaxArray(weight, [width]), 1e-5);
      expectNear(await bench.read(out), await value.data());
      const loss = (a: JaxArray, b: JaxArray) =>
        np.sum(jaxRmsNorm(a, b, 1e-5).mul(jaxArray(g, [rows, width])));
      const [jaxX, jaxW] = grad(loss, { argnums: [0, 1] })(
        jaxArray(x, [rows, width]),
        jaxArray(weight, [width]),
      );
      expectNear(await bench.read(gradX), await jaxX.data());
      expectNear(await bench.read(gradW), await jaxW.data());
    }));

  it("on swiglu and its gradients", () =>
    withBench(createReferenceBackend(), async (bench) => {
      const [gate, up, g] = ["gate", "up", "g"].map((seed) => randomFloats(60, `jax ${seed}`, 2));
      const [gates, ups, out] = [bench.floats(gate), bench.floats(up), bench.zeros(60)];
      bench.backend.swiglu(out, gates, ups);
      const [gradGate, gradUp] = [bench.zeros(60), bench.zeros(60)];
      bench.backend.swigluBackward(gradGate, gradUp, bench.floats(g), gates, ups);
      expectNear(
        await bench.read(out),
        await jaxSwiglu(jaxArray(gate, [60]), jaxArray(up, [60])).data(),
      );
      const loss = (a: JaxArray, b: JaxArray) => np.sum(jaxSwiglu(a, b).mul(jaxArray(g, [60])));
      const [jaxGate, jaxUp] = grad(loss, { argnums: [0, 1] })(
        jaxArray(gate, [60]),
        jaxArray(up, [60]),
      );
      expectNear(await bench.read(gradGate), await jaxGate.data());
      expectNear(await bench.read(gradUp), await jaxUp.data());
    }));

  it("on linear and its gradients", () =>
    withBench(createReferenceBackend(), async (bench) => {
      const [rows, outputs, inputs] = [9, 14, 11];
      const x = randomFloats(rows * inputs, "jax x");
      const weight = randomFloats(outputs * inputs, "jax weight");
      const g = randomFloats(rows * outputs, "jax g");
      const [xs, ws, gs] = [
        bench.floats(x),
        bench.weight(weight, outputs, inputs),
        bench.floats(g),
      ];
      const [out, gradX, gradW] = [g, x, weight].map(({ length }) => bench.zeros(length));
      bench.backend.linear(out, xs, ws, outputs, inputs);
      bench.backend.linearBackwardInput(gradX, gs, ws, outputs, inputs);
      bench.backend.linearBackwardWeight(gradW, gs, xs, outputs, inputs);
      const apply = (a: JaxArray, b: JaxArray) => np.matmul(a, np.transpose(b));
      const loss = (a: JaxArray, b: JaxArray) =>
        np.sum(apply(a, b).mul(jaxArray(g, [rows, outputs])));
      const inputsOf = (): [JaxArray, JaxArray] => [
        jaxArray(x, [rows, inputs]),
        jaxArray(weight, [outputs, inputs]),
      ];
      expectNear(await bench.read(out), await apply(...inputsOf()).data());
      const [jaxX, jaxW] = grad(loss, { argnums: [0, 1] })(...inputsOf());
      expectNear(await bench.read(gradX), await jaxX.data());
      expectNear(await bench.read(gradW), await jaxW.data());
    }));

  it("on causal grouped-query attention and its gradients", () =>
    withBench(createReferenceBackend(), async (bench) => {
      const { backend } = bench;
      const T = 11;
      const shape = { heads: 4, keyValueHeads: 2, headWidth: 6 };
      const q = randomFloats(T * 24, "jax q");
      const [k, v] = [randomFloats(T * 12, "jax k"), randomFloats(T * 12, "jax v")];
      const g = randomFloats(T * 24, "jax g");
      const plan = planOf([{ rowStart: 0, rowCount: T, selfSlot: 0, spans: [] }]);
      const cache = bench.own(backend.allocateCache(T, shape));
      const slots = bench.ints(Int32Array.from({ length: T }, (_, i) => i));
      backend.writeCache(cache, bench.floats(k), bench.floats(v), slots);
      const [out, logSumExp, qs] = [bench.zeros(T * 24), bench.zeros(T * 4), bench.floats(q)];
      backend.attention(out, logSumExp, qs, cache, plan, shape);
      const [gradQ, gradK, gradV] = [T * 24, T * 12, T * 12].map((length) => bench.zeros(length));
      backend.attentionBackward(
        gradQ,
        gradK,
        gradV,
        bench.floats(g),
        out,
        logSumExp,
        qs,
        cache,
        plan,
        shape,
      );
      const inputsOf = (): [JaxArray, JaxArray, JaxArray] => [
        jaxArray(q, [T, 4, 6]),
        jaxArray(k, [T, 2, 6]),
        jaxArray(v, [T, 2, 6]),
      ];
      expectNear(await bench.read(out), await jaxAttention(...inputsOf()).data());
      const loss = (a: JaxArray, b: JaxArray, c: JaxArray) =>
        np.sum(jaxAttention(a, b, c).mul(jaxArray(g, [T, 4, 6])));
      const [jaxQ, jaxK, jaxV] = grad(loss, { argnums: [0, 1, 2] })(...inputsOf());
      expectNear(await bench.read(gradQ), await jaxQ.data());
      expectNear(await bench.read(gradK), await jaxK.data());
      expectNear(await bench.read(gradV), await jaxV.data());
    }));

  it("on cross entropy and its gradient", () =>
    withBench(createReferenceBackend(), async (bench) => {
      const { backend } = bench;
      const [rows, vocabulary, temperature] = [8, 37, 0.7];
      const logits = randomFloats(rows * vocabulary, "jax logits", 3);
      const targets = randomInts(rows, vocabulary, "jax targets");
      const g = randomFloats(rows, "jax g");
      const [l, sums, out] = [bench.floats(logits), bench.zeros(rows), bench.zeros(rows)];
      const order = bench.ints(Int32Array.from({ length: rows }, (_, i) => i));
      const ids = bench.ints(targets);
      backend.logSumExp(sums, l, vocabulary, temperature);
      backend.gatherLogprobs(out, l, sums, order, ids, vocabulary, temperature);
      const gradLogits = bench.zeros(logits.length);
      const gs = bench.floats(g);
      backend.logprobsBackward(gradLogits, gs, l, sums, order, ids, vocabulary, temperature);
      const loss = (x: JaxArray) => jaxTermSum(x, [...targets], g, temperature);
      const [value, gradient] = valueAndGrad(loss)(jaxArray(logits, [rows, vocabulary]));
      const ours = (await bench.read(out)).reduce((sum, lp, t) => sum + lp * g[t], 0);
      expectNear([ours], [await value.jsAsync()]);
      expectNear(await bench.read(gradLogits), await gradient.data());
    }));
});

describe("jax-js agrees with a whole model", () => {
  const base: ModelConfig = {
    architecture: "qwen3",
    vocabularySize: 19,
    width: 16,
    intermediateWidth: 24,
    layers: 2,
    heads: 4,
    keyValueHeads: 2,
    headWidth: 8,
    normEpsilon: 1e-5,
    ropeTheta: 10_000,
    maxPositions: 64,
    tiedEmbeddings: true,
  };
  for (const [name, config] of [
    ["Qwen3 with tied embeddings", base],
    ["Llama without", { ...base, architecture: "llama", tiedEmbeddings: false }],
  ] as const) {
    it(`${name}: loss and the gradient of every parameter`, async () => {
      const policy = createPolicy(config, createReferenceBackend(), 21);
      const T = 12;
      const ids = [...randomInts(T, config.vocabularySize, "jax ids")];
      const targets = randomInts(T, config.vocabularySize, "jax model targets");
      const g = randomFloats(T, "jax model g");
      const { trie, rowsOf } = buildTrie([ids]);
      const terms = { rows: Int32Array.from(rowsOf[0]), targetIds: targets };
      const options = { temperature: 0.8, keepForBackward: true };
      const pass = await policy.forward(trie, terms, options);
      await pass.backward(g);
      const gradients = await policy.readGradients();

      const weights: Record<string, JaxArray> = {};
      for (const [key, values] of await policy.readWeights()) {
        const outputs = key.includes("norm")
          ? []
          : [values.length / (key.includes("down_proj") ? 24 : key.includes("o_proj") ? 32 : 16)];
        weights[key] = jaxArray(values, [...outputs, values.length / (outputs[0] ?? 1)]);
      }
      const loss = (w: Record<string, JaxArray>) =>
        jaxTermSum(jaxModelLogits(config, w, ids), [...targets], g, 0.8);
      const [value, jaxGradients] = valueAndGrad(loss)(weights);
      const ours = pass.logprobs.reduce((sum, lp, t) => sum + lp * g[t], 0);
      expectNear([ours], [await value.jsAsync()]);
      for (const [key, gradient] of gradients) expectNear(gradient, await jaxGradients[key].data());
    });
  }
});
