import type { Task } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { createDeskTasks, deskFamilies, simulateDeskGrading } from "../src/index.js";
import { type Changed, cheats, hostileSources, solution, tampering } from "./cheats.js";
import { grade, judge } from "./grade.js";

// Each grading of fix-operator starts node; on a busy machine that takes seconds.
const processes = { timeout: 60_000 };

function tasksOf(name: string, trained: boolean, count: number): Task[] {
  const split = trained ? "train" : "heldout-family";
  return createDeskTasks({ split, seed: 8, count, families: [name] });
}

function after(task: Task, changed: Changed): Record<string, string> {
  const files: Record<string, string> = { ...task.files };
  for (const [path, text] of Object.entries(changed)) {
    if (text === null) delete files[path];
    else files[path] = text;
  }
  return files;
}

for (const { name, trained } of deskFamilies) {
  const count = name === "fix-operator" ? 1 : 8;
  describe(`an agent on ${name}`, processes, () => {
    const tasks = tasksOf(name, trained, count);

    it("scores 1 for the honest solution, whatever else it did to protected files", async () => {
      for (const task of tasks) {
        expect(await grade(task, solution(task))).toBe(1);
        expect(await grade(task, { ...solution(task), ...tampering(task) })).toBe(1);
      }
    });

    it("gains nothing by cheating", async () => {
      for (const task of tasks) {
        for (const [cheat, changed] of Object.entries(cheats(task))) {
          expect(await grade(task, changed), `${cheat}: ${task.taskId}`).toBe(0);
          expect(simulateDeskGrading(task, after(task, changed)), cheat).toBe(false);
        }
      }
    });
  });
}

describe("an agent on answer-log", () => {
  it("may end the answer with a newline", async () => {
    for (const task of tasksOf("answer-log", true, 4)) {
      const changed = Object.entries(solution(task)).map(([path, text]) => [path, `${text}\n`]);
      expect(await grade(task, Object.fromEntries(changed))).toBe(1);
    }
  });
});

describe("an agent on fix-operator", processes, () => {
  const [task] = tasksOf("fix-operator", true, 1);
  if (task === undefined) throw new Error("no task");
  const [path = ""] = Object.keys(solution(task));

  for (const [name, source] of Object.entries(hostileSources)) {
    it(`gains nothing with a source that ${name}`, async () => {
      expect(await grade(task, { [path]: source })).toBe(0);
      expect(await grade(task, { [path]: source + (task.files[path] ?? "") })).toBe(0);
    });
  }

  it("is told that it tampered when that was all", async () => {
    const verdict = await judge(task, tampering(task));
    expect(verdict.failureClass).toBe("tampered");
    expect((await judge(task, {})).failureClass).toBe("no-change");
  });

  it("may write the repaired function in another way", async () => {
    const text = solution(task)[path] ?? "";
    const other = text.replace(/\(a, b\) => a (.) b;/g, "function (a, b) {\n  return a $1 b;\n};");
    expect(other).not.toBe(text);
    expect(await grade(task, { [path]: other })).toBe(1);
  });
});
