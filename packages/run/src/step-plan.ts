/**
 * Which tasks a step tries: a pure function of (seed, step), so a resumed run tries what the uninterrupted one would.
 */
import { createRandom, hashToSeed, type PolicyVersion, shuffled, type Task } from "@gimbal-rl/core";
import { type PlannedGroup, planGroup } from "@gimbal-rl/rollout";
import type { RunConfig } from "./run-config.js";

/** Label of a step's attempts: `step-0001`. */
export function stepLabel(step: number): string {
  return `step-${String(step).padStart(4, "0")}`;
}

/** Which part of a run an attempt belongs to: `eval-before`, `step-0003`, `rollout`. */
export function phaseOf(attemptId: string): string {
  const label = attemptId.split("/")[0] ?? attemptId;
  // A step numbers its groups: step-0003-1.
  return /^step-\d+/.exec(label)?.[0] ?? label;
}

/**
 * Tasks of a step: consecutive pieces of seeded orders, one order per pass over the tasks. An order spreads every family
 * evenly, so each step holds the families in their proportions: a gradient of few groups then follows what all tasks
 * share, not which family happened to be drawn (stratified sampling).
 */
export function tasksOfStep(
  tasks: readonly Task[],
  config: Pick<RunConfig, "seed" | "groupsPerStep">,
  step: number,
): Task[] {
  const first = (step - 1) * config.groupsPerStep;
  const orders = new Map<number, Task[]>();
  return Array.from({ length: config.groupsPerStep }, (_, i) => {
    const position = first + i;
    const pass = Math.floor(position / tasks.length);
    const order =
      orders.get(pass) ?? spreadOrder(tasks, hashToSeed("step-tasks", config.seed, pass));
    orders.set(pass, order);
    return order[position % tasks.length] as Task;
  });
}

/** Shuffles each family and gives its n members the places (k + offset) / n in [0, 1), with one offset per family. */
function spreadOrder(tasks: readonly Task[], seed: number): Task[] {
  const random = createRandom(seed);
  const families = new Map<string, Task[]>();
  for (const task of tasks) {
    families.set(task.family, [...(families.get(task.family) ?? []), task]);
  }
  const placed = [...families.values()].flatMap((members) => {
    const offset = random.next();
    return shuffled(members, random).map((task, k) => ({
      task,
      place: (k + offset) / members.length,
    }));
  });
  return placed.sort((a, b) => a.place - b.place).map(({ task }) => task);
}

/** The groups of a step. */
export function planStep(
  tasks: readonly Task[],
  config: RunConfig,
  step: number,
  policyVersion: PolicyVersion,
): PlannedGroup[] {
  const label = stepLabel(step);
  return tasksOfStep(tasks, config, step).map((task, i) => {
    // The position keeps ids apart when a small pool repeats a task within a step.
    const options = { label: `${label}-${i}`, task, size: config.groupSize, policyVersion };
    return planGroup({ ...options, runSeed: config.seed });
  });
}
