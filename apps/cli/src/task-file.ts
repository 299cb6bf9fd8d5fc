/**
 * Task files: one JSON object per line (docs/task-files.md).
 */
import { readFile } from "node:fs/promises";
import { GimbalError, parseTask, type Task } from "@gimbal-rl/core";
import { usageError } from "./errors.js";

/** What a line may leave out. */
const taskDefaults = {
  ...{ suite: "file", family: "file", split: "train" },
  ...{ protectedPaths: [], gradingFiles: {}, budgets: {} },
};

/**
 * Reads a task file.
 * @throws {GimbalError} `bad-usage` for a file that cannot be read or is empty, `config-invalid` naming the line and the field.
 */
export async function readTaskFile(path: string): Promise<Task[]> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    const cause = error instanceof Error ? error.message : String(error);
    throw usageError(`The task file ${path} cannot be read (${cause}). Check the path.`);
  });
  const seen = new Set<string>();
  const tasks = text.split("\n").flatMap((line, i) => {
    if (line.trim() === "") return [];
    const task = readTask(line, `${path}, line ${i + 1}`);
    if (seen.has(task.taskId)) {
      throw new GimbalError(
        "config-invalid",
        `${path}, line ${i + 1} repeats the task ${task.taskId}. Give each task once; --samples and --group-size say how often it is tried.`,
      );
    }
    seen.add(task.taskId);
    return [task];
  });
  if (tasks.length === 0) {
    throw usageError(`The task file ${path} holds no task; see docs/task-files.md.`);
  }
  return tasks;
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
      `${place} is no task. ${found} See docs/task-files.md.`,
      { cause: error },
    );
  }
}
