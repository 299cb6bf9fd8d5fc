/**
 * What `eval` and `rollout` share: the options of attempts without training, and running them under a bar.
 */
import { resolve } from "node:path";
import type { Harness, Task } from "@gimbal-rl/core";
import { createDeskTasks, type DeskSplit } from "@gimbal-rl/desk";
import type { SuiteResult } from "@gimbal-rl/eval";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { createSandbox } from "@gimbal-rl/sandbox";
import { runTasks } from "@gimbal-rl/sdk";
import { type Command, Option } from "commander";
import type { CliContext } from "./context.js";
import { loadHarness } from "./load-harness.js";
import { parseCount, parseNotNegative, parseSeed } from "./option-values.js";
import type { Output } from "./output.js";
import { resolveRunDir } from "./run-dir.js";
import { readTaskFile } from "./task-file.js";

/** Values of the shared options. */
export interface AttemptFlags {
  readonly split: DeskSplit;
  readonly tasks: number;
  readonly taskFile?: string;
  readonly samples: number;
  readonly model?: string;
  readonly harness: string;
  readonly seed: number;
  readonly temperature: number;
  readonly concurrency: number;
  readonly sandbox: "auto" | "process" | "namespace";
  readonly run?: string;
  readonly json?: boolean;
}

/** What differs between the commands. */
export interface AttemptDefaults extends Pick<AttemptFlags, "split" | "tasks" | "samples"> {
  /** Starts the name of the run folder. */
  readonly kind: string;
}

/** Adds the shared options. */
export function addAttemptOptions(command: Command, defaults: AttemptDefaults): Command {
  return command
    .addOption(
      new Option("--split <name>", "which desk tasks")
        .choices(["train", "heldout", "heldout-family", "demonstration", "pivot"])
        .default(defaults.split),
    )
    .option("--tasks <n>", "number of desk tasks", parseCount, defaults.tasks)
    .addOption(
      new Option(
        "--task-file <file>",
        "JSON lines of tasks of your own, instead of desk's (docs/task-files.md)",
      ).conflicts(["split", "tasks"]),
    )
    .option("--samples <n>", "attempts per task", parseCount, defaults.samples)
    .option("--model <folder>", "Hugging Face model folder (default: the bundled tiny policy)")
    .option("--harness <name>", "pi, or a module that exports a harness by default", "pi")
    .option("--seed <n>", "seed of tasks and sampling", parseSeed, 1)
    .option("--temperature <x>", "sampling temperature", parseNotNegative, 1)
    .option("--concurrency <n>", "attempts at once", parseCount, 4)
    .addOption(
      new Option("--sandbox <level>", "where attempts run")
        .choices(["auto", "process", "namespace"])
        .default("auto"),
    )
    .option(
      "--run <folder>",
      `where attempts are stored (default: runs/${defaults.kind}-<seed>-<time>)`,
    )
    .option("--json", "print the result as one JSON object on stdout");
}

/** The tasks of the file, or those of the suite. */
export async function chooseTasks(
  { seed, split, taskFile, tasks }: AttemptFlags,
  context: CliContext,
): Promise<Task[]> {
  return taskFile === undefined
    ? createDeskTasks({ split, seed, count: tasks })
    : readTaskFile(resolve(context.cwd, taskFile));
}

/** Attempts that were run, and where they lie. */
export interface FinishedAttempts {
  readonly result: SuiteResult;
  readonly harness: Harness;
  readonly runDir: string;
}

/** Prepares the harness and runs every task `--samples` times, with a bar that counts passes. */
export async function runAttempts(
  flags: AttemptFlags,
  context: CliContext,
  output: Output,
  options: { readonly kind: string; readonly label?: string; readonly tasks: readonly Task[] },
): Promise<FinishedAttempts> {
  const { concurrency, samples, seed, temperature } = flags;
  const { kind, label, tasks } = options;
  const runDir = resolveRunDir(context, kind, flags);
  const sandbox = createSandbox({ level: flags.sandbox });
  const harness = await loadHarness(flags.harness, context.cwd, sandbox);
  await harness.prepare({ install: true, signal: context.signal });
  const bar = output.bar("Attempts", tasks.length * samples);
  let passed = 0;
  const result = await runTasks(
    {
      ...{ runDir, harness, sandbox, tasks, samples, seed, temperature, concurrency },
      modelDir: resolve(context.cwd, flags.model ?? tinyModelDir),
      ...(label === undefined ? {} : { label }),
      onAttempt: (record, done) => {
        if (record.verdict.score === 1) passed += 1;
        bar.update(done, `${passed} passed`);
      },
    },
    context.signal,
  );
  bar.end();
  return { result, harness, runDir };
}
