/**
 * Contract cases of the dense operations: memory, rows, linear, norm, rope, SwiGLU, optimiser.
 *
 * Every backward is checked against finite differences of the f64 formula, and for adding to what is there.
 * Widths are odd on purpose: SIMD remainders must not show.
 */
import type { AdamWOptions } from "../backend.js";
import {
  type ContractCase,
  expectClose,
  expectSameBits,
  innerProduct,
  numericGradient,
  randomFloats,
  randomInts,
} from "./checks.js";
import { naiveLinear, naiveRmsNorm, naiveRope, naiveSwiglu } from "./naive.js";
import { pickRows, withBench } from "./suite-tools.js";
import { tolerancesF32 } from "./tolerances.js";

const wide = (values: Float32Array): Float64Array => Float64Array.from(values);

/** Rows, outputs, inputs; they cross the usual tile sizes. */
const linearShapes: readonly (readonly [rows: number, outputs: number, inputs: number])[] = [
  [1, 1, 1],
  [3, 5, 7],
  [17, 33, 29],
  [70, 64, 96],
];

const memoryCases: readonly ContractCase[] = [
  {
    name: "buffers start as zeros, also when memory is reused, and write, read, fill and copy honour offsets",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const values = randomFloats(37, "memory");
        const used = backend.allocate(37);
        backend.write(used, values);
        backend.free(used);
        const fresh = bench.zeros(37);
        expectSameBits("fresh", await bench.read(fresh), new Float32Array(37));
        backend.write(fresh, values.subarray(0, 5), 30);
        expectSameBits("tail", await backend.read(fresh, 30, 5), values.slice(0, 5));
        expectSameBits("head", await backend.read(fresh, 0, 30), new Float32Array(30));
        const other = bench.zeros(37);
        backend.fill(fresh, 1.5);
        backend.copy(other, fresh);
        backend.fill(fresh, 0);
        expectSameBits("copy", await bench.read(other), new Float32Array(37).fill(1.5));
      }),
  },
  {
    name: "rows are looked up by id, and scattered back by addition in row order",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const width = 13;
        const table = randomFloats(11 * width, "table");
        const ids = Int32Array.of(4, 0, 10, 4, 4, 7);
        const expected = pickRows(table, [...ids], width);
        const out = bench.zeros(expected.length);
        backend.embed(out, bench.floats(table), bench.ints(ids), width);
        expectSameBits("embed", await bench.read(out), expected);
        backend.fill(out, 0);
        backend.gatherRows(out, bench.floats(table), bench.ints(ids), width);
        expectSameBits("gatherRows", await bench.read(out), expected);
        const gradOut = randomFloats(expected.length, "grad");
        const sums = table.slice();
        ids.forEach((id, r) => {
          for (let j = 0; j < width; j += 1) sums[id * width + j] += gradOut[r * width + j];
        });
        for (const operation of ["embedBackward", "scatterAddRows"] as const) {
          const target = bench.floats(table);
          backend[operation](target, bench.floats(gradOut), bench.ints(ids), width);
          expectSameBits(operation, await bench.read(target), sums);
        }
      }),
  },
];

const linearCases: readonly ContractCase[] = linearShapes.flatMap(([rows, outputs, inputs]) => {
  const shape = `[${rows}, ${inputs}] -> ${outputs}`;
  const x = randomFloats(rows * inputs, "x");
  const weight = randomFloats(outputs * inputs, "weight", 0.3);
  const bias = randomFloats(outputs, "bias");
  const gradOut = randomFloats(rows * outputs, "gradOut");
  return [
    {
      name: `linear ${shape} equals the formula, with and without bias, and a row alone equals the row in a batch`,
      run: (backend) =>
        withBench(backend, async (bench) => {
          const { value } = tolerancesF32[backend.info.id];
          const w = bench.weight(weight, outputs, inputs);
          const out = bench.zeros(rows * outputs);
          backend.linear(out, bench.floats(x), w, outputs, inputs, bench.floats(bias));
          expectClose(
            "with bias",
            await bench.read(out),
            naiveLinear(wide(x), wide(weight), outputs, inputs, wide(bias)),
            value,
          );
          backend.linear(out, bench.floats(x), w, outputs, inputs);
          const batch = await bench.read(out);
          expectClose("y", batch, naiveLinear(wide(x), wide(weight), outputs, inputs), value);
          for (const count of [1, 2, 3, 4, 7].filter((n) => n <= rows)) {
            for (const row of new Set([0, rows - count])) {
              const picked = Array.from({ length: count }, (_, i) => row + i);
              const some = bench.zeros(count * outputs);
              backend.linear(some, bench.floats(pickRows(x, picked, inputs)), w, outputs, inputs);
              expectSameBits(
                `rows ${picked}`,
                await bench.read(some),
                pickRows(batch, picked, outputs),
              );
            }
          }
        }),
    },
    {
      name: `linear ${shape} follows a changed weight after refreshWeight`,
      run: (backend) =>
        withBench(backend, async (bench) => {
          const w = bench.weight(weight, outputs, inputs);
          const out = bench.zeros(rows * outputs);
          backend.linear(out, bench.floats(x), w, outputs, inputs);
          const changed = weight.map((v) => v * 0.5 + 0.25);
          backend.write(w, changed);
          backend.refreshWeight(w, outputs, inputs);
          backend.linear(out, bench.floats(x), w, outputs, inputs);
          const fresh = bench.zeros(rows * outputs);
          const w2 = bench.weight(changed, outputs, inputs);
          backend.linear(fresh, bench.floats(x), w2, outputs, inputs);
          expectSameBits("y", await bench.read(out), await bench.read(fresh));
        }),
    },
    {
      name: `linear ${shape} backward adds the finite-difference gradients`,
      run: (backend) =>
        withBench(backend, async (bench) => {
          const { gradient } = tolerancesF32[backend.info.id];
          const startX = randomFloats(x.length, "startX", 0.1);
          const startW = randomFloats(weight.length, "startW", 0.1);
          const startB = randomFloats(outputs, "startB", 0.1);
          const gradX = bench.floats(startX);
          const gradW = bench.floats(startW);
          const gradB = bench.floats(startB);
          const w = bench.weight(weight, outputs, inputs);
          const g = bench.floats(gradOut);
          backend.linearBackwardInput(gradX, g, w, outputs, inputs);
          backend.linearBackwardWeight(gradW, g, bench.floats(x), outputs, inputs, gradB);
          // The function is linear: a difference of any size is exact, so a few components are enough.
          const loss = (xs: Float64Array, ws: Float64Array, bs: Float64Array) =>
            innerProduct(naiveLinear(xs, ws, outputs, inputs, bs), gradOut);
          const [x64, w64, b64] = [wide(x), wide(weight), wide(bias)];
          const some = (length: number, seed: string) => [...randomInts(12, length, seed)];
          for (const [name, tensor, start, point, along] of [
            ["gradX", gradX, startX, x64, (v: Float64Array) => loss(v, w64, b64)],
            ["gradWeight", gradW, startW, w64, (v: Float64Array) => loss(x64, v, b64)],
            ["gradBias", gradB, startB, b64, (v: Float64Array) => loss(x64, w64, v)],
          ] as const) {
            const indices = some(start.length, name);
            const actual = await bench.read(tensor);
            const expected = numericGradient(along, point, indices);
            expectClose(
              name,
              indices.map((i) => actual[i]),
              expected.map((value, i) => value + start[indices[i]]),
              gradient,
            );
          }
        }),
    },
  ];
});

const elementCases: readonly ContractCase[] = [
  {
    name: "rmsNorm equals the formula, backward equals finite differences, a row alone equals the row in a batch",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const { value, gradient } = tolerancesF32[backend.info.id];
        for (const [rows, width] of [
          [1, 4],
          [5, 13],
          [19, 32],
        ] as const) {
          const epsilon = 1e-5;
          const x = randomFloats(rows * width, "norm x");
          const weight = randomFloats(width, "norm weight");
          const gradOut = randomFloats(rows * width, "norm grad");
          const [xs, ws, out, inverse] = [
            bench.floats(x),
            bench.floats(weight),
            bench.zeros(x.length),
            bench.zeros(rows),
          ];
          backend.rmsNorm(out, inverse, xs, ws, width, epsilon);
          const batch = await bench.read(out);
          expectClose("rmsNorm", batch, naiveRmsNorm(wide(x), wide(weight), epsilon), value);
          const one = bench.zeros(width);
          const last = bench.floats(pickRows(x, [rows - 1], width));
          backend.rmsNorm(one, bench.zeros(1), last, ws, width, epsilon);
          expectSameBits("row", await bench.read(one), pickRows(batch, [rows - 1], width));
          const gradX = bench.floats(x);
          const gradW = bench.floats(weight);
          backend.rmsNormBackward(gradX, gradW, bench.floats(gradOut), xs, inverse, ws, width);
          const numericX = numericGradient(
            (v) => innerProduct(naiveRmsNorm(v, wide(weight), epsilon), gradOut),
            wide(x),
          );
          const numericW = numericGradient(
            (v) => innerProduct(naiveRmsNorm(wide(x), v, epsilon), gradOut),
            wide(weight),
          );
          const plusX = numericX.map((v, i) => v + x[i]);
          expectClose("gradX", await bench.read(gradX), plusX, gradient);
          const plusW = numericW.map((v, i) => v + weight[i]);
          expectClose("gradWeight", await bench.read(gradW), plusW, gradient);
        }
      }),
  },
  {
    name: "rope equals the formula, its inverse undoes it, a row alone equals the row in a batch",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const { value } = tolerancesF32[backend.info.id];
        for (const [heads, headWidth] of [
          [1, 2],
          [3, 6],
          [2, 32],
        ] as const) {
          const positions = Int32Array.of(0, 3, 3, 9, 1);
          const table = randomFloats(10 * headWidth, "rope table").map((angle, i) =>
            Math.floor(i / (headWidth / 2)) % 2 === 0 ? Math.cos(angle) : Math.sin(angle),
          );
          // Cosine and sine of one angle, so that the inverse is exact.
          for (let p = 0; p < 10; p += 1)
            for (let i = 0; i < headWidth / 2; i += 1)
              table[p * headWidth + headWidth / 2 + i] = Math.sqrt(
                Math.max(0, 1 - table[p * headWidth + i] ** 2),
              );
          const x = randomFloats(5 * heads * headWidth, "rope x");
          const tensor = bench.floats(x);
          const cosSin = bench.floats(table);
          backend.rope(tensor, bench.ints(positions), cosSin, heads, headWidth, false);
          const turned = await bench.read(tensor);
          expectClose(
            "rope",
            turned,
            naiveRope(wide(x), positions, table, heads, headWidth),
            value,
          );
          const width = heads * headWidth;
          const one = bench.floats(pickRows(x, [3], width));
          backend.rope(one, bench.ints(positions.slice(3, 4)), cosSin, heads, headWidth, false);
          expectSameBits("row", await bench.read(one), pickRows(turned, [3], width));
          backend.rope(tensor, bench.ints(positions), cosSin, heads, headWidth, true);
          expectClose("inverse", await bench.read(tensor), x, value);
        }
      }),
  },
  {
    name: "swiglu equals the formula over the whole range, at any place, and backward equals finite differences",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const { value, gradient } = tolerancesF32[backend.info.id];
        const length = 103;
        const gate = randomFloats(length, "gate", 2);
        gate.set([0, -0, 30, -30, 88, -88, 1000, -1000]);
        const up = randomFloats(length, "up");
        const gradOut = randomFloats(length, "swiglu grad");
        const [gates, ups, out] = [bench.floats(gate), bench.floats(up), bench.zeros(length)];
        backend.swiglu(out, gates, ups);
        const values = await bench.read(out);
        const expected = naiveSwiglu(wide(gate), wide(up));
        // The extreme gates are compared alone, so that their size does not hide the rest.
        expectClose("extremes", values.subarray(0, 8), expected.subarray(0, 8), value);
        expectClose("swiglu", values.subarray(8), expected.subarray(8), value);
        for (const start of [1, 50, 100]) {
          const part = bench.zeros(3);
          const at = (v: Float32Array) => bench.floats(v.slice(start, start + 3));
          backend.swiglu(part, at(gate), at(up));
          expectSameBits(`at ${start}`, await bench.read(part), values.slice(start, start + 3));
        }
        const gradGate = bench.floats(up);
        const gradUp = bench.floats(gate.map((g) => Math.max(-1, Math.min(1, g))));
        backend.swigluBackward(gradGate, gradUp, bench.floats(gradOut), gates, ups);
        const numericGate = numericGradient(
          (v) => innerProduct(naiveSwiglu(v, wide(up)), gradOut),
          wide(gate),
        );
        const numericUp = numericGradient(
          (v) => innerProduct(naiveSwiglu(wide(gate), v), gradOut),
          wide(up),
        );
        const plusGate = numericGate.map((v, i) => v + up[i]);
        expectClose(
          "gradGate",
          (await bench.read(gradGate)).subarray(8),
          plusGate.subarray(8),
          gradient,
        );
        const plusUp = numericUp.map((v, i) => v + Math.max(-1, Math.min(1, gate[i])));
        const grads = await bench.read(gradUp);
        expectClose("gradUp", grads.subarray(8), plusUp.subarray(8), gradient);
        expectClose("gradUp extremes", grads.subarray(0, 8), plusUp.subarray(0, 8), gradient);
      }),
  },
  {
    name: "addScaled and addSumOfSquares equal their formulas and add to what is there",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const { value } = tolerancesF32[backend.info.id];
        const a = randomFloats(1003, "a");
        const b = randomFloats(1003, "b");
        const target = bench.floats(a);
        backend.addScaled(target, bench.floats(b), -0.37);
        expectClose(
          "addScaled",
          await bench.read(target),
          wide(a).map((v, i) => v - 0.37 * b[i]),
          value,
        );
        const sum = bench.floats(Float32Array.of(2));
        backend.addSumOfSquares(sum, bench.floats(a));
        backend.addSumOfSquares(sum, bench.floats(b));
        expectClose(
          "sum",
          await bench.read(sum),
          [2 + innerProduct(wide(a), a) + innerProduct(wide(b), b)],
          value,
        );
      }),
  },
  {
    name: "adamW equals the formula over several steps, with clipping and weight decay",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const { value } = tolerancesF32[backend.info.id];
        const length = 77;
        const start = randomFloats(length, "adam weight");
        const [w, m, v] = [bench.floats(start), bench.zeros(length), bench.zeros(length)];
        const [weight, first, second] = [
          wide(start),
          new Float64Array(length),
          new Float64Array(length),
        ];
        for (let step = 1; step <= 4; step += 1) {
          const gradient = randomFloats(length, `adam ${step}`);
          const options: AdamWOptions = {
            learningRate: 0.01,
            beta1: 0.9,
            beta2: 0.95,
            epsilon: 1e-8,
            weightDecay: 0.1,
            step,
            gradientScale: 0.5,
          };
          backend.adamW(w, bench.floats(gradient), m, v, options);
          for (let i = 0; i < length; i += 1) {
            const g = 0.5 * gradient[i];
            first[i] = 0.9 * first[i] + 0.1 * g;
            second[i] = 0.95 * second[i] + 0.05 * g * g;
            const direction =
              first[i] / (1 - 0.9 ** step) / (Math.sqrt(second[i] / (1 - 0.95 ** step)) + 1e-8);
            weight[i] -= 0.01 * direction + 0.01 * 0.1 * weight[i];
          }
        }
        expectClose("weight", await bench.read(w), weight, value);
        expectClose("first moment", await bench.read(m), first, value);
        expectClose("second moment", await bench.read(v), second, value);
      }),
  },
];

/** Cases of memory, rows, linear, norm, rope, SwiGLU and optimiser. */
export const denseCases: readonly ContractCase[] = [
  ...memoryCases,
  ...linearCases,
  ...elementCases,
];
