import { asId, type PolicyVersion, type Task, type TaskId } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { defaultRunConfig, type RunConfig } from "./run-config.js";
import { planStep, stepLabel, tasksOfStep } from "./step-plan.js";

const policyVersion = asId<PolicyVersion>("step-0");

function tasksNamed(count: number): Task[] {
  return Array.from({ length: count }, (_, i) => ({
    taskId: asId<TaskId>(`desk/train/${i}`),
    suite: "fake",
    family: "fake",
    split: "train",
    instruction: "",
    files: {},
    protectedPaths: [],
    gradingFiles: {},
    verifier: { kind: "fake", options: {} },
    budgets: {},
  }));
}

/** Families of unequal size, in blocks, as a suite hands them out. */
function tasksOfFamilies(sizes: Readonly<Record<string, number>>): Task[] {
  return Object.entries(sizes).flatMap(([family, count]) =>
    tasksNamed(count).map((task, i) => ({
      ...task,
      family,
      taskId: asId<TaskId>(`${family}/${i}`),
    })),
  );
}

function configOf(change: Partial<RunConfig>): RunConfig {
  return { ...defaultRunConfig, seed: 1, facts: {}, ...change };
}

describe("tasksOfStep", () => {
  const tasks = tasksNamed(10);
  const idsOf = (config: RunConfig, steps: readonly number[]): string[] =>
    steps.flatMap((step) => tasksOfStep(tasks, config, step).map(({ taskId }) => taskId as string));

  it("tries every task once before any comes back, also across the border of two passes", () => {
    // Passes of 10 tasks in steps of 4: the third step holds the end of one pass and the start of the next.
    const ids = idsOf(configOf({ groupsPerStep: 4 }), [1, 2, 3, 4, 5]);
    expect([...ids.slice(0, 10)].sort()).toEqual(tasks.map(({ taskId }) => taskId).sort());
    expect([...ids.slice(10)].sort()).toEqual(tasks.map(({ taskId }) => taskId).sort());
    expect(ids.slice(0, 10)).not.toEqual(ids.slice(10));
  });

  it("holds every family in its proportion, give or take one, in every step of every seed", () => {
    const mixed = tasksOfFamilies({ a: 12, b: 24, c: 36 });
    for (let seed = 1; seed <= 40; seed += 1) {
      const config = configOf({ groupsPerStep: 6, seed });
      for (let step = 1; step <= 12; step += 1) {
        const families = tasksOfStep(mixed, config, step).map(({ family }) => family);
        const countOf = (family: string) => families.filter((one) => one === family).length;
        expect(Math.abs(countOf("a") - 1)).toBeLessThanOrEqual(1);
        expect(Math.abs(countOf("b") - 2)).toBeLessThanOrEqual(1);
        expect(Math.abs(countOf("c") - 3)).toBeLessThanOrEqual(1);
      }
    }
  });

  it("depends on seed and step alone", () => {
    const config = configOf({ groupsPerStep: 4 });
    expect(idsOf(config, [3])).toEqual(idsOf(configOf({ groupsPerStep: 4 }), [3]));
    expect(idsOf(configOf({ groupsPerStep: 4, seed: 2 }), [1, 2])).not.toEqual(
      idsOf(config, [1, 2]),
    );
  });
});

describe("planStep", () => {
  it("gives every attempt an id of its own, also when a small pool repeats a task within a step", () => {
    const config = configOf({ groupsPerStep: 5, groupSize: 3 });
    const plans = [1, 2, 3].flatMap((step) => planStep(tasksNamed(2), config, step, policyVersion));
    const attempts = plans.flatMap((plan) => plan.attempts);
    expect(attempts).toHaveLength(45);
    expect(new Set(attempts.map(({ attemptId }) => attemptId)).size).toBe(45);
    expect(new Set(attempts.map(({ seed }) => seed)).size).toBe(45);
    expect(new Set(plans.map(({ groupId }) => groupId)).size).toBe(15);
  });

  it("labels ids by step, so that steps sort as text", () => {
    expect([1, 20, 300].map(stepLabel)).toEqual(["step-0001", "step-0020", "step-0300"]);
    const [first] = planStep(tasksNamed(1), configOf({ groupsPerStep: 1 }), 7, policyVersion);
    expect(first?.groupId).toBe("step-0007-0/desk/train/0");
  });
});
