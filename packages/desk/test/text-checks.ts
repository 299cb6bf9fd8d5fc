import type { Task } from "@gimbal-rl/core";
import { createDeskTasks, type DeskSplit } from "../src/index.js";

export const allSplits: readonly DeskSplit[] = [
  "train",
  "heldout",
  "heldout-family",
  "demonstration",
  "pivot",
];

/** Some tasks of every split, all families. */
export function someTasks(seed: number, perSplit: number): Task[] {
  return allSplits.flatMap((split) => createDeskTasks({ split, seed, count: perSplit }));
}
