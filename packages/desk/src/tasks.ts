/**
 * Draws tasks of a split.
 *
 * Law: same options, same tasks, on every platform; fewer tasks are a prefix of more; families take turns.
 */
import { createRandom, GimbalError, hashToSeed, type Task } from "@gimbal-rl/core";
import { createDraw } from "./draw.js";
import { deskFamilies } from "./families.js";
import type { DeskFamily } from "./member.js";
import { memberToTask } from "./member-to-task.js";
import { type DeskSplit, memberKey, splitOf } from "./split.js";

/** What to draw. */
export interface CreateDeskTasksOptions {
  readonly split: DeskSplit;
  readonly seed: number;
  readonly count: number;
  /** Names of families; default: all that belong to the split. */
  readonly families?: readonly string[];
}

/**
 * Draws `count` distinct tasks.
 * @throws {GimbalError} `config-invalid` for an unknown family, one that does not belong to the split, or a count
 * that is no whole number.
 */
export function createDeskTasks(options: CreateDeskTasksOptions): Task[] {
  const families = chooseFamilies(options);
  if (!Number.isInteger(options.count) || options.count < 0) {
    throw new GimbalError(
      "config-invalid",
      `count is ${options.count}; expected a whole number from 0. Pass how many tasks to draw.`,
    );
  }
  const sources = families.map((family) => createSource(family, options.split, options.seed));
  const tasks: Task[] = [];
  for (let i = 0; i < options.count; i += 1) {
    const source = sources[i % sources.length];
    if (source !== undefined) tasks.push(source());
  }
  return tasks;
}

function chooseFamilies({ split, families }: CreateDeskTasksOptions): readonly DeskFamily[] {
  const fitting = deskFamilies.filter((one) => one.trained === (split !== "heldout-family"));
  if (families === undefined) return fitting;
  const names = fitting.map((one) => one.name).join(", ");
  if (families.length === 0) {
    throw new GimbalError("config-invalid", `No family was named; use some of ${names}.`);
  }
  return families.map((name) => {
    const family = fitting.find((one) => one.name === name);
    if (family !== undefined) return family;
    throw new GimbalError(
      "config-invalid",
      `Family "${name}" does not belong to the split ${split}; use some of ${names}.`,
    );
  });
}

/** An endless stream of distinct tasks of one family. */
function createSource(family: DeskFamily, split: DeskSplit, seed: number): () => Task {
  const random = createRandom(hashToSeed("desk", split, seed, family.name));
  const seen = new Set<string>();
  return () => {
    for (;;) {
      const member = family.draw(createDraw(random));
      const phrasings = family.phrasings[member.variant]?.length ?? 0;
      const phrasing = random.integer(phrasings);
      const key = memberKey(family, member);
      if (splitOf(family, member) !== split || seen.has(key)) continue;
      seen.add(key);
      return memberToTask(family, member, phrasing, split);
    }
  };
}
