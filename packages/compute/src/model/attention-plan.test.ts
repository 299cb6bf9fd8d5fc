import type { TokenTrie } from "@gimbal-rl/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { visibleSlots } from "../test/naive.js";
import { buildTrie } from "../test/trie-tools.js";
import { selectPlanRows, trieToPlan } from "./attention-plan.js";

/** Rows on the path to each row, by parent rows alone. */
function pathsOf(trie: TokenTrie): number[][] {
  return [...trie.parentRows.keys()].map((row) => {
    const path: number[] = [];
    for (let at = row; at >= 0; at = trie.parentRows[at]) path.unshift(at);
    return path;
  });
}

const sequences = fc.array(
  fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 8 }),
  {
    minLength: 1,
    maxLength: 6,
  },
);

describe("the attention plan of a trie", () => {
  it("lets each row see exactly its path to the root, in order, for any segments", () => {
    fc.assert(
      fc.property(sequences, fc.integer({ min: 1, max: 5 }), (lists, longest) => {
        const { trie } = buildTrie(lists, longest);
        expect(visibleSlots(trieToPlan(trie))).toEqual(pathsOf(trie));
      }),
    );
  });

  it("for chosen rows lets each see what it saw, for any order and repetition", () => {
    fc.assert(
      fc.property(sequences, fc.array(fc.nat({ max: 1000 }), { maxLength: 12 }), (lists, picks) => {
        const { trie } = buildTrie(lists);
        const rows = picks.map((pick) => pick % trie.tokenIds.length);
        const plan = selectPlanRows(trieToPlan(trie), Int32Array.from(rows), trie.tokenIds.length);
        const paths = pathsOf(trie);
        expect(visibleSlots(plan)).toEqual(rows.map((row) => paths[row]));
      }),
    );
  });

  it("keeps neighbouring rows and spans together", () => {
    const { trie } = buildTrie([[1, 2, 3, 4, 5, 6]], 2);
    const plan = trieToPlan(trie);
    expect([...plan.spanSlots]).toEqual([0, 0]);
    expect([...plan.spanLengths]).toEqual([2, 4]);
    const chosen = selectPlanRows(
      trieToPlan(buildTrie([[1, 2, 3, 4, 5]]).trie),
      Int32Array.of(1, 2, 4),
      5,
    );
    expect([...chosen.rowCounts]).toEqual([2, 1]);
  });

  it("is refused for a malformed trie", () => {
    const { trie } = buildTrie([
      [1, 2, 3],
      [1, 4],
    ]);
    const broken: readonly Partial<TokenTrie>[] = [
      { positions: Int32Array.of(0, 1, 3, 1) },
      { positions: Int32Array.of(0, 1) },
      { segmentParents: Int32Array.of(-1, 2, 0) },
      { segmentParents: Int32Array.of(-1, 0) },
      { segmentStarts: Int32Array.of(1, 2, 3) },
      { segmentStarts: Int32Array.of(0, 2, 2) },
      { parentRows: Int32Array.of(-1, 0, 0, 0) },
    ];
    for (const change of broken)
      expect(() => trieToPlan({ ...trie, ...change })).toThrowError(/Malformed token trie/);
    expect(() => selectPlanRows(trieToPlan(trie), Int32Array.of(9), 4)).toThrowError(/Row 9/);
  });
});
