/**
 * Plays the expert against the simulated tools: for tests and for prototyping a learner.
 */
import { GimbalError, type Task } from "@gimbal-rl/core";
import { createDeskExpert, type DeskHabit } from "./expert.js";
import type { ExpertCall, ExpertObservation } from "./expert-turn.js";
import { type DeskFiles, simulateDeskTool } from "./simulate-tool.js";

/** One expert run. */
export interface DeskEpisode {
  readonly taskId: string;
  readonly family: string;
  readonly instruction: string;
  readonly turns: readonly {
    readonly text?: string;
    readonly toolCalls: readonly ExpertCall[];
    /** Tool answers, one per call. */
    readonly results: readonly string[];
  }[];
  readonly finalText: string;
  /** The workspace afterwards. */
  readonly files: DeskFiles;
}

/**
 * Plays one task to its end.
 * @throws {GimbalError} `budget-exhausted` after 12 turns, which the expert never needs.
 */
export function playDeskEpisode(
  task: Pick<Task, "taskId" | "family" | "instruction" | "files">,
  habit: DeskHabit = "careful",
): DeskEpisode {
  const expert = createDeskExpert(task, habit);
  const observations: ExpertObservation[] = [];
  const turns: DeskEpisode["turns"][number][] = [];
  let files: DeskFiles = task.files;
  for (let turn = 0; turn < 12; turn += 1) {
    const { text, toolCalls } = expert.next(observations);
    if (toolCalls.length === 0) {
      const { taskId, family, instruction } = task;
      return { taskId, family, instruction, turns, finalText: text ?? "", files };
    }
    const results = toolCalls.map((call) => {
      const result = simulateDeskTool(files, call);
      files = result.files;
      observations.push({ ...call, text: result.text });
      return result.text;
    });
    turns.push({ ...(text === undefined ? {} : { text }), toolCalls, results });
  }
  throw new GimbalError(
    "budget-exhausted",
    `The expert did not finish ${task.taskId} in 12 turns; a family's planner loops. Fix its next().`,
  );
}
