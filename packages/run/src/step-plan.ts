/**
 * Which tasks a step tries: a pure function of (seed, step), so a resumed run tries what the uninterrupted one would.
 */
import { createRandom, hashToSeed, type PolicyVersion, type Task } from "@gimbal-rl/core";
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

/** Tasks of a step: consecutive pieces of seeded permutations, one permutation per pass over the tasks. */
export function tasksOfStep(
  tasks: readonly Task[],
  config: Pick<RunConfig, "seed" | "groupsPerStep">,
  step: number,
): Task[] {
  const first = (step - 1) * config.groupsPerStep;
  return Array.from({ length: config.groupsPerStep }, (_, i) => {
    const position = first + i;
    const pass = Math.floor(position / tasks.length);
    const order = permutation(tasks.length, hashToSeed("step-tasks", config.seed, pass));
    return tasks[order[position % tasks.length] ?? 0] as Task;
  });
}

function permutation(length: number, seed: number): number[] {
  const random = createRandom(seed);
  const order = Array.from({ length }, (_, index) => index);
  for (let i = length - 1; i > 0; i -= 1) {
    const j = random.integer(i + 1);
    const moved = order[i] as number;
    order[i] = order[j] as number;
    order[j] = moved;
  }
  return order;
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
