/**
 * Draws tasks of a split.
 *
 * Law: same options, same tasks, on every platform; fewer tasks are a prefix of more; families take turns.
 */
import { createRandom, GimbalError, hashToSeed, type Task } from "@gimbal-rl/core";
import { createDraw } from "./draw.js";
import { deskFamilies } from "./families.js";
import type { DeskFamily, DeskMember } from "./member.js";
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

/** Tasks are drawn whole into memory: about 2 kB each. */
const maxCount = 100_000;

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
  if (options.count > maxCount) {
    throw new GimbalError(
      "config-invalid",
      `count is ${options.count}; desk draws at most ${maxCount} tasks at once. Ask for fewer tasks, steps or groups.`,
    );
  }
  const sources = families.map((family) => ({
    family,
    next: createMemberSource(family, options.split, options.seed),
  }));
  const tasks: Task[] = [];
  for (let i = 0; i < options.count; i += 1) {
    const source = sources[i % sources.length];
    if (source === undefined) break;
    const { member, phrasing } = source.next();
    tasks.push(memberToTask(source.family, member, phrasing, options.split));
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

/** A member and the phrasing it is worded with. */
export interface DrawnMember {
  readonly member: DeskMember;
  readonly phrasing: number;
}

/** Draws in a row that may miss the split or repeat a member before the family counts as used up. */
const maxMisses = 10_000;

/**
 * A stream of distinct members of one family that belong to the split.
 * @throws {GimbalError} `config-invalid` on a draw when the family has no further member in the split.
 */
export function createMemberSource(
  family: DeskFamily,
  split: DeskSplit,
  seed: number,
): () => DrawnMember {
  const random = createRandom(hashToSeed("desk", split, seed, family.name));
  const seen = new Set<string>();
  return () => {
    for (let miss = 0; miss < maxMisses; miss += 1) {
      const member = family.draw(createDraw(random));
      const phrasing = random.integer(family.phrasings[member.variant]?.length ?? 0);
      const key = memberKey(family, member);
      if (splitOf(family, member) !== split || seen.has(key)) continue;
      seen.add(key);
      return { member, phrasing };
    }
    throw new GimbalError(
      "config-invalid",
      `Family ${family.name} gave ${seen.size} members of the split ${split} and no more; ask for fewer tasks.`,
    );
  };
}
