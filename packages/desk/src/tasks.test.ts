import { createRandom, GimbalError } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { allSplits, someTasks } from "../test/text-checks.js";
import { createDraw } from "./draw.js";
import { deskFamilies } from "./families.js";
import type { DeskFamily } from "./member.js";
import { memberKey, splitOf } from "./split.js";
import { createDeskTasks, createMemberSource } from "./tasks.js";

/** A family of 40 members, small enough to see every one of them. */
const toy: DeskFamily = {
  name: "toy",
  trained: true,
  summary: "",
  phrasings: { plain: ["a {n}", "b {n}", "c {n}"] },
  draw: (draw) => {
    const n = String(draw.between(0, 39));
    const none = { files: {}, wanted: {}, protectedPaths: [], gradingFiles: {} };
    return { variant: "plain", fields: { n }, ...none };
  },
  next: () => ({ toolCalls: [] }),
};

function drain(family: DeskFamily, split: (typeof allSplits)[number], seed: number): string[] {
  const next = createMemberSource(family, split, seed);
  const keys: string[] = [];
  try {
    for (;;) keys.push(memberKey(family, next().member));
  } catch (error) {
    expect(GimbalError.is(error) && error.code).toBe("config-invalid");
  }
  return keys;
}

describe("createDeskTasks", () => {
  it("gives the same tasks for the same options and other tasks for another seed", () => {
    const options = { split: "train", seed: 5, count: 20 } as const;
    expect(createDeskTasks(options)).toEqual(createDeskTasks(options));
    const ids = new Set(createDeskTasks(options).map((task) => task.taskId));
    const others = createDeskTasks({ ...options, seed: 6 });
    expect(others.some((task) => ids.has(task.taskId))).toBe(false);
  });

  it("gives a prefix when fewer tasks are asked for", () => {
    const many = createDeskTasks({ split: "heldout", seed: 1, count: 30 });
    expect(createDeskTasks({ split: "heldout", seed: 1, count: 11 })).toEqual(many.slice(0, 11));
  });

  it("lets the families of a split take turns", () => {
    for (const split of allSplits) {
      const families = deskFamilies.filter((one) => one.trained === (split !== "heldout-family"));
      const tasks = createDeskTasks({ split, seed: 3, count: families.length * 9 });
      for (const { name } of families) {
        expect(tasks.filter((task) => task.family === name)).toHaveLength(9);
      }
    }
  });

  it("says in each task which split it is of", () => {
    for (const split of allSplits) {
      expect(createDeskTasks({ split, seed: 1, count: 1 })[0]?.split).toBe(split);
    }
  });

  it("refuses a family that does not belong to the split", () => {
    const code = (split: (typeof allSplits)[number], families: string[]): unknown => {
      try {
        return createDeskTasks({ split, seed: 1, count: 1, families });
      } catch (error) {
        return GimbalError.is(error) ? error.code : error;
      }
    };
    expect(code("train", ["copy-setting"])).toBe("config-invalid");
    expect(code("heldout-family", ["move-value"])).toBe("config-invalid");
    expect(code("train", ["absent"])).toBe("config-invalid");
    expect(code("train", [])).toBe("config-invalid");
  });

  it("writes plain data that survives JSON", () => {
    const tasks = someTasks(2, 8);
    expect(JSON.parse(JSON.stringify(tasks))).toEqual(tasks);
  });

  it("gives every task its own id", () => {
    const tasks = someTasks(4, 100);
    expect(new Set(tasks.map((task) => task.taskId)).size).toBe(tasks.length);
  });

  it("keeps the answer out of the instruction", () => {
    for (const task of someTasks(9, 40)) {
      const path = changedPath(task.verifier.options);
      if (path === null || path.startsWith("out/")) continue;
      const named = ["move-value", "copy-setting"].includes(task.family);
      expect(task.instruction.includes(path), task.instruction).toBe(named);
    }
  });
});

/** The first file that must change, where the file state says so. */
function changedPath(options: Readonly<Record<string, unknown>>): string | null {
  const wanted = (options.files ?? {}) as Record<string, { readonly normalised?: string }>;
  return Object.keys(wanted).find((path) => wanted[path]?.normalised !== undefined) ?? null;
}

// Thousands of draws; the limit leaves room for a busy machine.
describe("splits", { timeout: 30_000 }, () => {
  it("partition the members of a family, whatever the seeds", () => {
    const bySplit = allSplits.map((split) => new Set([1, 2].flatMap((s) => drain(toy, split, s))));
    const all = bySplit.flatMap((keys) => [...keys]);
    expect(all).toHaveLength(40);
    expect(new Set(all).size).toBe(40);
    expect(bySplit.filter((keys) => keys.size > 0)).toHaveLength(4);
  });

  it("never share a task between train, heldout, demonstrations and pivots", () => {
    const owner = new Map<string, string>();
    for (const seed of [1, 2]) {
      for (const split of allSplits) {
        for (const task of createDeskTasks({ split, seed, count: 210 })) {
          const key = JSON.stringify([task.family, task.files, task.verifier]);
          expect(owner.get(key) ?? split).toBe(split);
          owner.set(key, split);
        }
      }
    }
  });

  it("hold about 50, 20, 20 and 10 percent of every trained family", () => {
    for (const family of deskFamilies.filter((one) => one.trained)) {
      const random = createRandom(11);
      const counts: Record<string, number> = {};
      for (let i = 0; i < 1000; i += 1) {
        const split = splitOf(family, family.draw(createDraw(random)));
        counts[split] = (counts[split] ?? 0) + 1;
      }
      // Five standard deviations of a binomial with 1000 draws are at most 79.
      const expected = { train: 500, heldout: 200, demonstration: 200, pivot: 100 };
      for (const [split, want] of Object.entries(expected)) {
        expect(Math.abs((counts[split] ?? 0) - want), `${family.name} ${split}`).toBeLessThan(79);
      }
    }
  });

  it("do not depend on the order of keys in a member", () => {
    const member = toy.draw(createDraw(createRandom(1)));
    const reversed = Object.fromEntries(Object.entries(member).reverse()) as typeof member;
    expect(memberKey(toy, reversed)).toBe(memberKey(toy, member));
  });

  it("refuses a count that would fill the memory", () => {
    expect(() => createDeskTasks({ split: "train", seed: 1, count: 1e9 })).toThrow(
      /at most 100000/,
    );
  });

  it("keep their ids however graders are written: demonstrations and seeds hang on them", () => {
    const ids = createDeskTasks({ split: "train", seed: 1, count: 8 }).map(({ taskId }) => taskId);
    expect(ids).toEqual([
      "desk/train/fix-operator/debeec2014015113",
      "desk/train/rename-function/fef259ff0fc8d6d8",
      "desk/train/move-value/c3372a590ade5551",
      "desk/train/answer-log/63347d53ba10a94c",
      "desk/train/change-setting/36f73c4255ff3386",
      "desk/train/revert-change/9b094ecbc9778f33",
      "desk/train/bump-port/2803e9a4fbbcec0c",
      "desk/train/fix-operator/23d707c722783d4d",
    ]);
  });
});
