/**
 * Contract cases of attention and of the log-probability operations.
 */
import type { AttentionPlan, AttentionShape } from "../backend.js";
import {
  type ContractCase,
  expectClose,
  expectSameBits,
  expectTrue,
  innerProduct,
  numericGradient,
  randomFloats,
  randomInts,
} from "./checks.js";
import { naiveAttention, naiveLogprobs, visibleSlots } from "./naive.js";
import { type Bench, pickRows, planOf, withBench } from "./suite-tools.js";
import { tolerancesF32 } from "./tolerances.js";

const wide = (values: Float32Array): Float64Array => Float64Array.from(values);
const rangeOf = (count: number): Int32Array => Int32Array.from({ length: count }, (_, i) => i);

/** A trunk of 5 rows, two branches of 4 and 3, and a leaf of 2 below the first branch. */
const smallTree = planOf([
  { rowStart: 0, rowCount: 5, selfSlot: 0, spans: [] },
  { rowStart: 5, rowCount: 4, selfSlot: 5, spans: [[0, 5]] },
  { rowStart: 9, rowCount: 3, selfSlot: 9, spans: [[0, 5]] },
  {
    rowStart: 12,
    rowCount: 2,
    selfSlot: 12,
    spans: [
      [0, 5],
      [5, 4],
    ],
  },
]);

const shapes: readonly AttentionShape[] = [
  { heads: 1, keyValueHeads: 1, headWidth: 2 },
  { heads: 4, keyValueHeads: 2, headWidth: 6 },
  { heads: 3, keyValueHeads: 3, headWidth: 16 },
  { heads: 4, keyValueHeads: 1, headWidth: 32 },
];

function runAttention(
  bench: Bench,
  queries: Float32Array,
  keys: Float32Array,
  values: Float32Array,
  slots: Int32Array,
  slotCount: number,
  plan: AttentionPlan,
  shape: AttentionShape,
) {
  const { backend } = bench;
  const cache = bench.own(backend.allocateCache(slotCount, shape));
  backend.writeCache(cache, bench.floats(keys), bench.floats(values), bench.ints(slots));
  const out = bench.zeros(queries.length);
  const logSumExp = bench.zeros(queries.length / shape.headWidth);
  const queryTensor = bench.floats(queries);
  backend.attention(out, logSumExp, queryTensor, cache, plan, shape);
  return { out, logSumExp, cache, queries: queryTensor };
}

const attentionCases: readonly ContractCase[] = [
  ...shapes.map(
    (shape): ContractCase => ({
      name: `attention with ${shape.heads}/${shape.keyValueHeads} heads of ${shape.headWidth} equals the formula and its backward equals finite differences`,
      run: (backend) =>
        withBench(backend, async (bench) => {
          const { value, gradient } = tolerancesF32[backend.info.id];
          const rows = 14;
          const q = randomFloats(rows * shape.heads * shape.headWidth, "q");
          const keyLength = rows * shape.keyValueHeads * shape.headWidth;
          const [k, v] = [randomFloats(keyLength, "k"), randomFloats(keyLength, "v")];
          const gradOut = randomFloats(q.length, "attention grad");
          const run = runAttention(bench, q, k, v, rangeOf(rows), rows, smallTree, shape);
          const visible = visibleSlots(smallTree);
          const naive = naiveAttention(wide(q), wide(k), wide(v), visible, shape);
          expectClose("out", await bench.read(run.out), naive.out, value);
          expectClose("logSumExp", await bench.read(run.logSumExp), naive.logSumExp, value);
          const [gradQ, gradK, gradV] = [bench.floats(q), bench.floats(k), bench.floats(v)];
          backend.attentionBackward(
            gradQ,
            gradK,
            gradV,
            bench.floats(gradOut),
            run.out,
            run.logSumExp,
            run.queries,
            run.cache,
            smallTree,
            shape,
          );
          const loss = (a: Float64Array, b: Float64Array, c: Float64Array) =>
            innerProduct(naiveAttention(a, b, c, visible, shape).out, gradOut);
          const [q64, k64, v64] = [wide(q), wide(k), wide(v)];
          for (const [name, tensor, point, along] of [
            ["gradQueries", gradQ, q64, (x: Float64Array) => loss(x, k64, v64)],
            ["gradKeys", gradK, k64, (x: Float64Array) => loss(q64, x, v64)],
            ["gradValues", gradV, v64, (x: Float64Array) => loss(q64, k64, x)],
          ] as const) {
            const indices = [...randomInts(Math.min(40, point.length), point.length, name)];
            const actual = await bench.read(tensor);
            const expected = numericGradient(along, point, indices);
            expectClose(
              name,
              indices.map((i) => actual[i]),
              expected.map((g, i) => g + point[indices[i]]),
              gradient,
            );
          }
        }),
    }),
  ),
  {
    name: "a row's attention is the same bits alone and in a segment, for any cut into segments and spans, and any slots",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const shape = { heads: 4, keyValueHeads: 2, headWidth: 32 };
        const rows = 333; // Crosses blocks of up to 256 keys and leaves a remainder.
        const q = randomFloats(rows * 128, "q long");
        const [k, v] = [randomFloats(rows * 64, "k long"), randomFloats(rows * 64, "v long")];
        const whole = planOf([{ rowStart: 0, rowCount: rows, selfSlot: 0, spans: [] }]);
        const base = runAttention(bench, q, k, v, rangeOf(rows), rows, whole, shape);
        const out = await bench.read(base.out);
        const logSumExp = await bench.read(base.logSumExp);

        const cuts = [0, 1, 2, 34, 65, 130, 131, 257, 300, rows];
        const segments = cuts.slice(0, -1).map((start, s) => ({
          rowStart: start,
          rowCount: cuts[s + 1] - start,
          selfSlot: start,
          spans: cuts.slice(0, s).map((slot, i) => [slot, cuts[i + 1] - slot] as const),
        }));
        const cut = runAttention(bench, q, k, v, rangeOf(rows), rows, planOf(segments), shape);
        expectSameBits("cut", await bench.read(cut.out), out);
        expectSameBits("cut logSumExp", await bench.read(cut.logSumExp), logSumExp);

        // The same keys elsewhere: pieces of 37 slots in reverse order, with gaps.
        const pieces = Math.ceil(rows / 37);
        const slotOf = (row: number) => (pieces - 1 - Math.floor(row / 37)) * 41 + (row % 37) + 3;
        const moved = Array.from({ length: pieces }, (_, p) => ({
          rowStart: p * 37,
          rowCount: Math.min(37, rows - p * 37),
          selfSlot: slotOf(p * 37),
          spans: Array.from({ length: p }, (_unused, a) => [slotOf(a * 37), 37] as const),
        }));
        const slots = rangeOf(rows).map(slotOf);
        const total = pieces * 41 + 3;
        const far = runAttention(bench, q, k, v, slots, total, planOf(moved), shape);
        expectSameBits("moved", await bench.read(far.out), out);

        for (const row of [0, 1, 63, 64, 128, 255, 256, 257, 332]) {
          const alone = planOf([
            { rowStart: 0, rowCount: 1, selfSlot: row, spans: row === 0 ? [] : [[0, row]] },
          ]);
          const one = runAttention(
            bench,
            pickRows(q, [row], 128),
            k,
            v,
            rangeOf(rows),
            rows,
            alone,
            shape,
          );
          expectSameBits(`row ${row}`, await bench.read(one.out), pickRows(out, [row], 128));
        }
      }),
  },
  {
    name: "attention stays finite and exact when one key dominates",
    run: (backend) =>
      withBench(backend, async (bench) => {
        const { value } = tolerancesF32[backend.info.id];
        const shape = { heads: 1, keyValueHeads: 1, headWidth: 4 };
        const k = randomFloats(12, "k big", 100);
        const [q, v] = [randomFloats(12, "q big", 100), randomFloats(12, "v big")];
        const plan = planOf([{ rowStart: 0, rowCount: 3, selfSlot: 0, spans: [] }]);
        const run = runAttention(bench, q, k, v, rangeOf(3), 3, plan, shape);
        const naive = naiveAttention(wide(q), wide(k), wide(v), visibleSlots(plan), shape);
        // Scores near 1e5 carry an f32 rounding of 1e-2, so only their order survives: hence the looser factor.
        expectClose("out", await bench.read(run.out), naive.out, value * 1e4);
        expectClose("logSumExp", await bench.read(run.logSumExp), naive.logSumExp, value);
      }),
  },
];

const logprobCases: readonly ContractCase[] = [5, 64, 1003].map((vocabulary): ContractCase => {
  const rows = 9;
  const logits = randomFloats(rows * vocabulary, "logits", 3);
  // Row 2 has three terms, one repeated; row 4 has none.
  const termRows = Int32Array.of(0, 2, 1, 2, 2, 3, 5, 6, 7, 8);
  const targets = randomInts(10, vocabulary, "targets");
  targets[4] = targets[1];
  const gradLogprobs = randomFloats(10, "grad logprobs");
  return {
    name: `log-probabilities over ${vocabulary} ids equal the formula, backward equals finite differences, sampling agrees`,
    run: (backend) =>
      withBench(backend, async (bench) => {
        const { value, gradient } = tolerancesF32[backend.info.id];
        for (const temperature of [1, 0.7]) {
          const l = bench.floats(logits);
          const sums = bench.zeros(rows);
          const [r, t] = [bench.ints(termRows), bench.ints(targets)];
          const out = bench.zeros(10);
          backend.logSumExp(sums, l, vocabulary, temperature);
          backend.gatherLogprobs(out, l, sums, r, t, vocabulary, temperature);
          const naive = (x: Float64Array) =>
            naiveLogprobs(x, termRows, targets, vocabulary, temperature);
          expectClose("logprobs", await bench.read(out), naive(wide(logits)), value);

          const one = bench.zeros(1);
          const row = bench.floats(pickRows(logits, [7], vocabulary));
          backend.logSumExp(one, row, vocabulary, temperature);
          expectSameBits("row", await bench.read(one), (await bench.read(sums)).slice(7, 8));

          const ids = new Int32Array(rows);
          const sampled = new Float32Array(rows);
          const uniforms = Float32Array.of(0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.25);
          await backend.sample(ids, sampled, l, uniforms, vocabulary, temperature);
          const again = bench.zeros(rows);
          const [all, chosen] = [bench.ints(rangeOf(rows)), bench.ints(ids)];
          backend.gatherLogprobs(again, l, sums, all, chosen, vocabulary, temperature);
          expectSameBits("sampled", sampled, await bench.read(again));
          for (let i = 0; i < rows; i += 1) {
            const id = new Int32Array(1);
            const logprob = new Float32Array(1);
            const single = bench.floats(pickRows(logits, [i], vocabulary));
            const uniform = uniforms.slice(i, i + 1);
            await backend.sample(id, logprob, single, uniform, vocabulary, temperature);
            expectTrue(`row ${i} alone samples ${id[0]}, not ${ids[i]}.`, id[0] === ids[i]);
            expectSameBits(`row ${i} alone`, logprob, sampled.slice(i, i + 1));
            const naiveRow = wide(logits.slice(i * vocabulary, (i + 1) * vocabulary));
            const every = naiveLogprobs(
              naiveRow,
              new Int32Array(vocabulary),
              rangeOf(vocabulary),
              vocabulary,
              temperature,
            );
            const below = every.subarray(0, ids[i]).reduce((sum, lp) => sum + Math.exp(lp), 0);
            const slack = 1e-5; // f32 cumulative sums of up to 1003 terms.
            expectTrue(
              `row ${i}: id ${ids[i]} covers [${below}, ...) but the uniform number is ${uniforms[i]}.`,
              below <= uniforms[i] + slack && below + Math.exp(every[ids[i]]) > uniforms[i] - slack,
            );
          }

          const g = bench.floats(gradLogprobs);
          const gradLogits = bench.zeros(logits.length);
          backend.logprobsBackward(gradLogits, g, l, sums, r, t, vocabulary, temperature);
          const apart = await bench.read(gradLogits);
          const indices = [
            ...[...termRows].map((termRow, i) => termRow * vocabulary + targets[i]),
            ...randomInts(12, logits.length, "logit indices"),
          ];
          const expected = numericGradient(
            (x) => innerProduct(naive(x), gradLogprobs),
            wide(logits),
            indices,
          );
          const picked = indices.map((i) => apart[i]);
          expectClose("gradLogits", picked, expected, gradient);
          const empty = apart.subarray(4 * vocabulary, 5 * vocabulary);
          expectTrue(
            "a row without terms has no gradient",
            empty.every((x) => x === 0),
          );
          backend.logprobsBackward(l, g, l, sums, r, t, vocabulary, temperature);
          expectSameBits("in place", await bench.read(l), apart);
        }
      }),
  };
});

const greedyCase: ContractCase = {
  name: "temperature 0 takes the first maximum, with its log-probability at temperature 1",
  run: (backend) =>
    withBench(backend, async (bench) => {
      const logits = bench.floats(Float32Array.of(0, 2, 1, 2, -1, -3, -1, -1, -2, -9));
      const ids = new Int32Array(2);
      const logprobs = new Float32Array(2);
      await backend.sample(ids, logprobs, logits, Float32Array.of(0.9, 0.9), 5, 0);
      expectTrue(`found ids ${ids}, expected 1 and 1.`, ids[0] === 1 && ids[1] === 1);
      const sums = bench.zeros(2);
      const out = bench.zeros(2);
      backend.logSumExp(sums, logits, 5, 0);
      const [rows, targets] = [bench.ints(rangeOf(2)), bench.ints(ids)];
      backend.gatherLogprobs(out, logits, sums, rows, targets, 5, 0);
      expectSameBits("gathered", logprobs, await bench.read(out));
      backend.logSumExp(sums, logits, 5, 1);
      backend.gatherLogprobs(out, logits, sums, rows, targets, 5, 1);
      expectSameBits("at temperature 1", logprobs, await bench.read(out));
    }),
};

/** Cases of attention, log-probabilities and sampling. */
export const sequenceCases: readonly ContractCase[] = [
  ...attentionCases,
  ...logprobCases,
  greedyCase,
];
