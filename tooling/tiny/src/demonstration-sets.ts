/**
 * Which runs the two sets of demonstrations hold: disjoint tasks, each solved once in one habit.
 */
import {
  createDeskTasks,
  type DeskSplit,
  deskFamilies,
  playDeskEpisode,
  simulateDeskGrading,
} from "@gimbal-rl/desk";
import type { ExpertTask } from "./expert-engine.js";

/** One set. */
export interface DemonstrationSet {
  readonly name: string;
  readonly split: DeskSplit;
  /** Of the careful tasks; the hasty ones come from the next seed. */
  readonly seed: number;
  /** Tasks that the careful expert solves. */
  readonly careful: number;
  /** Tasks that the hasty expert solves, spread over the families. */
  readonly hasty: number;
}

/** `tiny` trains the policy; `pivot` is what PivotRL starts from, and the policy never sees it. */
export const demonstrationSets: readonly DemonstrationSet[] = [
  { name: "tiny", split: "demonstration", seed: 1, careful: 700, hasty: 2520 },
  { name: "pivot", split: "pivot", seed: 1, careful: 112, hasty: 0 },
];

/** The tasks of a set in order, each once. */
export function expertTasks({ careful, hasty, seed, split }: DemonstrationSet): ExpertTask[] {
  const tasks: ExpertTask[] = createDeskTasks({ split, seed, count: careful }).map((task) => ({
    task,
    habit: "careful",
  }));
  const known = new Set(tasks.map(({ task }) => task.taskId));
  const families = deskFamilies.filter((one) => one.trained && one.nextHasty !== undefined);
  const perFamily = hasty === 0 ? 0 : Math.ceil(hasty / families.length);
  for (const { name } of families) {
    // Short cuts work out in about a quarter of the tasks. Those that the simulator sees fail would not be kept, so
    // they are not run; the real verifier still decides about the others.
    const solved = createDeskTasks({
      ...{ split, seed: seed + 1, count: perFamily * 8, families: [name] },
    }).filter(
      (task) =>
        !known.has(task.taskId) && simulateDeskGrading(task, playDeskEpisode(task, "hasty").files),
    );
    if (solved.length < perFamily) {
      throw new RangeError(`Only ${solved.length} tasks of ${name} allow a short cut; draw more.`);
    }
    tasks.push(...solved.slice(0, perFamily).map((task) => ({ task, habit: "hasty" }) as const));
  }
  return tasks;
}
