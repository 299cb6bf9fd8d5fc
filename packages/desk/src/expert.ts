/**
 * The scripted expert.
 *
 * Law: it is a function of the instruction and of what tools answered; it never sees the member. It plans from what
 * it knows, so it can take over from any state, and it stops instead of repeating a call that failed.
 */
import { GimbalError, type Task } from "@gimbal-rl/core";
import {
  act,
  answerTo,
  type ExpertObservation,
  type ExpertTurn,
  isErrorText,
  readCall,
  stuck,
} from "./expert-turn.js";
import { deskFamilies } from "./families.js";
import { parseInstruction } from "./instruction.js";

/**
 * How the expert works. `careful` looks until it knows and solves every task. `hasty` takes a short cut where the family
 * has one (the first line of a file, the first file of a folder, the definition without its callers), solves the tasks that
 * happen to allow it and fails or ends with `Not done.` in the others; in families without a short cut it is careful.
 */
export type DeskHabit = "careful" | "hasty";

/** Says what to do next. */
export interface DeskExpert {
  /** The next turn, from all observations so far, in order. */
  next(observations: readonly ExpertObservation[]): ExpertTurn;
}

/**
 * An expert for one task. Only the instruction is used.
 * @throws {GimbalError} `invalid-request` when the instruction fits no phrasing of the suite.
 */
export function createDeskExpert(
  task: Pick<Task, "instruction">,
  habit: DeskHabit = "careful",
): DeskExpert {
  const parsed = parseInstruction(deskFamilies, task.instruction);
  if (parsed === null) {
    throw new GimbalError(
      "invalid-request",
      `The instruction fits no phrasing of the suite desk: "${task.instruction}". Pass a task made by createDeskTasks.`,
    );
  }
  const { family, fields } = parsed;
  const shortCut = habit === "hasty" ? family.nextHasty : undefined;
  const plan = shortCut ?? family.next;
  return {
    next(observations) {
      const last = observations.at(-1);
      if (last !== undefined && last.name === "edit" && isErrorText(last.text)) {
        return shortCut === undefined ? recover(last, observations) : stuck;
      }
      return plan(
        fields,
        observations.filter((one) => !isFailedChange(one)),
      );
    },
  };
}

/** A change that did not happen, so it does not count as made. */
function isFailedChange(one: ExpertObservation): boolean {
  return (one.name === "edit" || one.name === "write") && isErrorText(one.text);
}

/** An edit that failed: see what the file really says; with that known already, give up. */
function recover(
  failed: ExpertObservation,
  observations: readonly ExpertObservation[],
): ExpertTurn {
  const path = /"path": ?"([^"]+)"/.exec(failed.argumentsText)?.[1];
  if (path === undefined) return stuck;
  return answerTo(observations, readCall(path)) === null ? act(readCall(path)) : stuck;
}
