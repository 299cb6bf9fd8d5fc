/**
 * `gimbal rollout`: attempts at tasks, captured and judged, without training.
 */
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { GimbalError, parseTask, type Task } from "@gimbal-rl/core";
import { createDeskTasks, type DeskSplit } from "@gimbal-rl/desk";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { createSandbox } from "@gimbal-rl/sandbox";
import { runTasks } from "@gimbal-rl/sdk";
import { type Command, Option } from "commander";
import type { CliContext } from "../context.js";
import { loadHarness } from "../load-harness.js";
import { parseCount, parseNotNegative, parseSeed } from "../option-values.js";
import { formatTable } from "../output.js";
import { resolveRunDir } from "../run-dir.js";

interface RolloutFlags {
  readonly tasks?: string;
  readonly split: DeskSplit;
  readonly count: number;
  readonly model: string;
  readonly harness: string;
  readonly samples: number;
  readonly seed: number;
  readonly temperature: number;
  readonly concurrency: number;
  readonly sandbox: "auto" | "process" | "namespace";
  readonly run?: string;
  readonly json?: boolean;
}

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("rollout")
    .description("Run attempts at tasks with a harness; store the captured calls and the verdicts.")
    .option("--tasks <file>", "JSON lines of tasks (default: the desk suite)")
    .addOption(
      new Option("--split <name>", "desk tasks to take when no file is given")
        .choices(["train", "heldout", "heldout-family", "demonstration", "pivot"])
        .default("train"),
    )
    .option("--count <n>", "number of desk tasks", parseCount, 8)
    .option("--model <folder>", "Hugging Face model folder", tinyModelDir)
    .option("--harness <name>", "pi, or a module that exports a harness by default", "pi")
    .option("--samples <n>", "attempts per task", parseCount, 4)
    .option("--seed <n>", "seed of tasks and sampling", parseSeed, 1)
    .option("--temperature <x>", "sampling temperature", parseNotNegative, 1)
    .option("--concurrency <n>", "attempts at once", parseCount, 4)
    .addOption(
      new Option("--sandbox <level>", "where attempts run")
        .choices(["auto", "process", "namespace"])
        .default("auto"),
    )
    .option("--run <folder>", "where attempts are stored (default: runs/rollout-<seed>-<time>)")
    .option("--json", "print the result as one JSON object on stdout")
    .addHelpText("after", "\nExample:\n  $ gimbal rollout --count 4 --samples 2\n")
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
  const { concurrency, samples, seed, temperature } = flags;
  const runDir = resolveRunDir(context, "rollout", flags);
  const tasks =
    flags.tasks === undefined
      ? createDeskTasks({ split: flags.split, seed, count: flags.count })
      : await readTasks(resolve(context.cwd, flags.tasks));
  const sandbox = createSandbox({ level: flags.sandbox });
  const harness = await loadHarness(flags.harness, context.cwd, sandbox);
  await harness.prepare({ install: true, signal: context.signal });
  const bar = output.bar("Attempts", tasks.length * samples);
  let passed = 0;
  const result = await runTasks(
    {
      ...{ runDir, harness, sandbox, tasks, samples, seed, temperature, concurrency },
      modelDir: resolve(context.cwd, flags.model),
      onAttempt: (record, done) => {
        if (record.verdict.score === 1) passed += 1;
        bar.update(done, `${passed} passed`);
      },
    },
    context.signal,
  );
  bar.end();
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
