/**
 * `gimbal rollout`: attempts at tasks, captured and judged, without training.
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { GimbalError, parseTask, type Task } from "@gimbal-rl/core";
import { createDeskTasks } from "@gimbal-rl/desk";
import { type Command, Option } from "commander";
import { type AttemptFlags, addAttemptOptions, runAttempts } from "../attempt-options.js";
import type { CliContext } from "../context.js";
import { formatTable } from "../output.js";

interface RolloutFlags extends AttemptFlags {
  readonly taskFile?: string;
}

const kind = "rollout";

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  const command = program
    .command("rollout")
    .description("Run attempts at tasks with a harness; store the captured calls and the verdicts.")
    .addOption(
      new Option(
        "--task-file <file>",
        "JSON lines of tasks, instead of the desk suite's",
      ).conflicts(["split", "tasks"]),
    );
  addAttemptOptions(command, { kind, split: "train", tasks: 8, samples: 4 })
    .addHelpText("after", "\nExample:\n  $ gimbal rollout --tasks 4 --samples 2\n")
    .action(async (flags: RolloutFlags) => runRollout(flags, context));
}

/** What a line of a task file may leave out. */
const taskDefaults = {
  ...{ suite: "file", family: "file", split: "train" },
  ...{ protectedPaths: [], gradingFiles: {}, budgets: {} },
};

/** Reads a task file: one JSON object per line. */
async function readTasks(path: string): Promise<Task[]> {
  const text = await readFile(path, "utf8");
  const seen = new Set<string>();
  return text.split("\n").flatMap((line, i) => {
    if (line.trim() === "") return [];
    const task = readTask(line, `${path}, line ${i + 1}`);
    if (seen.has(task.taskId)) {
      throw new GimbalError(
        "config-invalid",
        `${path}, line ${i + 1} repeats the task ${task.taskId}. Give each task once; --samples says how often it is tried.`,
      );
    }
    seen.add(task.taskId);
    return [task];
  });
}

function readTask(line: string, place: string): Task {
  try {
    const value: unknown = JSON.parse(line);
    const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
    return parseTask(isRecord ? { ...taskDefaults, ...value } : value);
  } catch (error) {
    const found = GimbalError.is(error) ? error.message : "It is not JSON.";
    throw new GimbalError(
      "config-invalid",
      `${place} is no task. ${found} See docs/architecture/rollout.md.`,
      { cause: error },
    );
  }
}

async function runRollout(flags: RolloutFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  const tasks =
    flags.taskFile === undefined
      ? createDeskTasks({ split: flags.split, seed: flags.seed, count: flags.tasks })
      : await readTasks(resolve(context.cwd, flags.taskFile));
  const { harness, result, runDir } = await runAttempts(flags, context, output, { kind, tasks });
  output.text(
    `${formatTable(
      ["task", "attempts", "passed", "mean score"],
      result.tasks.map((task) => [
        ...[task.taskId, String(task.samples), String(task.successes), task.score.toFixed(3)],
      ]),
    )}\nStored in ${runDir}`,
  );
  output.json({
    runDir,
    harness: harness.id,
    harnessVersion: harness.version,
    tasks: result.tasks,
    attempts: result.records.map(({ attempt, calls, failureClass, sampledTokens, verdict }) => ({
      attemptId: attempt.attemptId,
      score: verdict.score,
      ...{ failureClass, calls, sampledTokens },
    })),
  });
}
