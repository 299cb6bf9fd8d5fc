import type { Tensor } from "@gimbal-rl/compute";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createTracingPolicy } from "../../test/tracing-policy.js";
import { type Draw, drawAll, drawTruncated, toSinglePrecisionUniform } from "./sampling.js";

const logits = Float32Array.of(0, 2, 1, 2, -3);

test("top-k keeps the k most likely ids, the lower of equals, and renormalises", () => {
  const keep2 = { temperature: 1, topP: 1, topK: 2 };
  expect(drawTruncated(logits, keep2, 0.2)).toEqual({ id: 1, logprob: Math.fround(Math.log(0.5)) });
  expect(drawTruncated(logits, keep2, 0.7)).toEqual({ id: 3, logprob: Math.fround(Math.log(0.5)) });
  expect(drawTruncated(logits, { ...keep2, topK: 1 }, 0.99)).toEqual({ id: 1, logprob: 0 });
});

test("top-p keeps the smallest set that holds the mass", () => {
  const drawnIds = (topP: number): number[] => {
    const ids = new Set<number>();
    for (let i = 0; i < 1000; i += 1) {
      ids.add(drawTruncated(logits, { temperature: 1, topP, topK: 0 }, i / 1000).id);
    }
    return [...ids].toSorted();
  };
  expect(drawnIds(0.1)).toEqual([1]);
  expect(drawnIds(0.6)).toEqual([1, 3]);
  expect(drawnIds(0.9)).toEqual([1, 2, 3]);
  expect(drawnIds(0.99)).toEqual([0, 1, 2, 3]);
});

test("the probabilities of the kept ids sum to one, and each id fills its share of the uniforms", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: -40, max: 40 }), { minLength: 1, maxLength: 9 }),
      fc.double({ min: 0.05, max: 1, noNaN: true }),
      fc.integer({ min: 0, max: 9 }),
      fc.double({ min: 0.2, max: 3, noNaN: true }),
      (tenths, topP, topK, temperature) => {
        const values = Float32Array.from(tenths, (tenth) => tenth / 10);
        const shares = new Map<number, { count: number; logprob: number }>();
        const draws = 2000;
        for (let i = 0; i < draws; i += 1) {
          const uniform = (i + 0.5) / draws;
          const { id, logprob } = drawTruncated(values, { temperature, topP, topK }, uniform);
          shares.set(id, { count: (shares.get(id)?.count ?? 0) + 1, logprob });
        }
        let total = 0;
        for (const { count, logprob } of shares.values()) {
          total += Math.exp(logprob);
          expect(Math.abs(count / draws - Math.exp(logprob))).toBeLessThan(0.002);
        }
        // An id too unlikely to be met by 2000 uniforms may be missing from the sum.
        expect(Math.abs(total - 1)).toBeLessThan(0.006);
        if (topK > 0) expect(shares.size).toBeLessThanOrEqual(topK);
      },
    ),
    { numRuns: 60 },
  );
});

test("a uniform is exact in f32 and stays below one", () => {
  expect(toSinglePrecisionUniform(0xffff_ffff / 0x1_0000_0000)).toBeLessThan(1);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (uniform) => {
      const cut = toSinglePrecisionUniform(uniform);
      expect(Math.fround(cut)).toBe(cut);
      expect(cut).toBeLessThanOrEqual(uniform);
      expect(uniform - cut).toBeLessThan(2 ** -24);
    }),
  );
});

test("a batch of mixed parameters gives each draw what it gets alone", async () => {
  const { backend } = createTracingPolicy();
  const rows = 4;
  const vocabulary = 7;
  const tensor = backend.allocate(rows * vocabulary) as Tensor & { data: Float32Array };
  for (let i = 0; i < tensor.length; i += 1) tensor.data[i] = ((i * 37) % 11) / 3;
  const draws: Draw[] = Array.from({ length: 9 }, (_, i) => ({
    row: (i * 3) % rows,
    uniform: i / 9,
    sampling: { temperature: [0, 1, 0.5][i % 3], topP: i === 4 ? 0.7 : 1, topK: i === 7 ? 2 : 0 },
  }));
  const together = await drawAll(backend, tensor, rows, vocabulary, draws);
  for (const [i, draw] of draws.entries()) {
    expect(await drawAll(backend, tensor, rows, vocabulary, [draw])).toEqual([together[i]]);
  }
});
