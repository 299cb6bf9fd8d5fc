/**
 * `gimbal train`: a GRPO run with one's own tasks, model, harness or settings, or the continuation of a run.
 */
import { resolve } from "node:path";
import { GimbalError, type Task } from "@gimbal-rl/core";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { defaultRunConfig, type RunTasks } from "@gimbal-rl/run";
import { createSandbox } from "@gimbal-rl/sandbox";
import {
  createDeskRun,
  createGrpoRun,
  readRunFolder,
  replayGrpoRun,
  tinyPolicySettings,
} from "@gimbal-rl/sdk";
import { type Command, Option } from "commander";
import type { CliContext } from "../context.js";
import { usageError } from "../errors.js";
import { followRun, type OpenRun } from "../follow-run.js";
import { harnessModule, loadHarness } from "../load-harness.js";
import {
  parseCount,
  parseGroupSize,
  parseNatural,
  parseNotNegative,
  parsePositive,
  parseSeed,
  parseThreads,
} from "../option-values.js";
import { resolveRunDir } from "../run-dir.js";
import { readTaskFile } from "../task-file.js";

interface TrainFlags {
  readonly resume?: string;
  readonly replay?: string;
  readonly run?: string;
  readonly model?: string;
  readonly harness?: string;
  readonly taskFile?: string;
  readonly heldoutFile?: string;
  readonly seed: number;
  readonly steps?: number;
  readonly groups?: number;
  readonly groupSize?: number;
  readonly learningRate?: number;
  readonly kl?: number;
  readonly epochs?: number;
  readonly temperature?: number;
  readonly concurrency?: number;
  readonly heldout?: number;
  readonly heldoutFamily?: number;
  readonly sandbox: "auto" | "process" | "namespace";
  readonly threads: number;
  readonly json?: boolean;
}

/** Settings of a new run: a stored one has its own, and silently ignoring a flag would mislead. */
const newRunFlags = [
  ...["run", "seed", "steps", "groups", "groupSize", "learningRate", "kl", "epochs"],
  ...[
    "temperature",
    "concurrency",
    "heldout",
    "heldoutFamily",
    "sandbox",
    "taskFile",
    "heldoutFile",
  ],
];

const defaults = defaultRunConfig;
const byDefault = (value: number): string => ` (default: ${value})`;

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("train")
    .description(
      "Train with GRPO on the desk suite or on tasks of your own, or continue a run from its folder.",
    )
    .addOption(
      new Option(
        "--resume <run>",
        "continue the run in this folder; only --harness and --model may be given with it",
      ).conflicts(["replay", "threads", ...newRunFlags]),
    )
    .addOption(
      new Option(
        "--replay <run>",
        "train again from the groups a run stored, without a harness or a sampler; only --threads may be given with it",
      ).conflicts(["harness", "model", ...newRunFlags]),
    )
    .option("--run <folder>", "folder of the new run (default: runs/train-<seed>-<time>)")
    .option(
      "--model <folder>",
      "Hugging Face model folder to start from (default: the bundled tiny policy)",
    )
    .option("--harness <name>", "pi, or a module that exports a harness by default")
    .addOption(
      new Option(
        "--task-file <file>",
        "JSON lines of training tasks of your own, instead of desk's (docs/task-files.md)",
      ).conflicts(["heldout", "heldoutFamily"]),
    )
    .option(
      "--heldout-file <file>",
      "JSON lines of tasks evaluated before and after; with --task-file (default: none)",
    )
    .option("--seed <n>", "seed of everything random", parseSeed, 1)
    .option("--steps <n>", `training steps${byDefault(defaults.steps)}`, parseCount)
    .option(
      "--groups <n>",
      `groups (tasks) per step${byDefault(defaults.groupsPerStep)}`,
      parseCount,
    )
    .option(
      "--group-size <n>",
      `attempts per group${byDefault(defaults.groupSize)}`,
      parseGroupSize,
    )
    .option(
      "--learning-rate <x>",
      `AdamW learning rate${byDefault(defaults.learningRate)}; the bundled policy has its own`,
      parsePositive,
    )
    .option(
      "--kl <x>",
      `coefficient of the KL to the start${byDefault(defaults.klCoefficient)}`,
      parseNotNegative,
    )
    .option("--epochs <n>", `updates per step${byDefault(defaults.epochs)}`, parseCount)
    .option(
      "--temperature <x>",
      `sampling temperature${byDefault(defaults.temperature)}`,
      parsePositive,
    )
    .option("--concurrency <n>", `attempts at once${byDefault(defaults.concurrency)}`, parseCount)
    .option(
      "--heldout <n>",
      `held-out desk tasks evaluated before and after${byDefault(defaults.evaluation.heldoutTasks)}`,
      parseNatural,
    )
    .option(
      "--heldout-family <n>",
      `tasks of the held-out family${byDefault(defaults.evaluation.heldoutFamilyTasks)}`,
      parseNatural,
    )
    .addOption(
      new Option("--sandbox <level>", "where attempts run")
        .choices(["auto", "process", "namespace"])
        .default("auto"),
    )
    .option("--threads <n>", "trainer threads", parseThreads, 2)
    .option("--json", "print the result as one JSON object on stdout")
    .addHelpText(
      "after",
      "\nExamples:\n  $ gimbal train --steps 4 --run runs/mine\n  $ gimbal train --resume runs/mine\n",
    )
    .action(async (flags: TrainFlags) => runTrain(flags, context));
}

/** Drops what was not given, so that defaults stay. */
function given<Settings extends object>(settings: Settings): Partial<Settings> {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined),
  ) as Partial<Settings>;
}

async function createRun(flags: TrainFlags, context: CliContext): Promise<OpenRun> {
  const runDir = resolveRunDir(context, "train", flags);
  const sandbox = createSandbox({ level: flags.sandbox });
  const name = flags.harness ?? "pi";
  const harness = await loadHarness(name, context.cwd, sandbox);
  const module = harnessModule(name, context.cwd);
  const modelDir = resolve(context.cwd, flags.model ?? tinyModelDir);
  const common = {
    ...{ runDir, seed: flags.seed, threads: flags.threads, modelDir, sandboxLevel: sandbox.level },
    harness: { id: harness.id, version: harness.version, ...(module === null ? {} : { module }) },
  };
  const settings = {
    ...(modelDir === tinyModelDir ? tinyPolicySettings : {}),
    ...given({
      steps: flags.steps,
      groupsPerStep: flags.groups,
      groupSize: flags.groupSize,
      learningRate: flags.learningRate,
      klCoefficient: flags.kl,
      epochs: flags.epochs,
      temperature: flags.temperature,
      concurrency: flags.concurrency,
    }),
  };
  const tasks = await readTasks(flags, context);
  const config =
    tasks === null
      ? await createDeskRun({
          ...common,
          settings: {
            ...settings,
            evaluation: {
              heldoutTasks: flags.heldout ?? defaults.evaluation.heldoutTasks,
              heldoutFamilyTasks: flags.heldoutFamily ?? defaults.evaluation.heldoutFamilyTasks,
            },
          },
        })
      : await createGrpoRun({ ...common, settings, suite: "file", tasks });
  return { runDir, sandbox, harness, modelDir, config };
}

/** Tasks from files; null without one. */
async function readTasks(flags: TrainFlags, context: CliContext): Promise<RunTasks | null> {
  const read = async (path: string | undefined): Promise<Task[]> =>
    path === undefined ? [] : readTaskFile(resolve(context.cwd, path));
  if (flags.taskFile === undefined) {
    if (flags.heldoutFile === undefined) return null;
    throw usageError("--heldout-file needs --task-file; desk has held-out tasks of its own.");
  }
  const [train, heldout] = [await read(flags.taskFile), await read(flags.heldoutFile)];
  const known = new Set(train.map(({ taskId }) => taskId));
  const both = heldout.find(({ taskId }) => known.has(taskId));
  if (both !== undefined) {
    throw usageError(`${both.taskId} is in both files; a held-out task must not be trained on.`);
  }
  return { train, heldout, heldoutFamily: [] };
}

async function openRun(runDir: string, flags: TrainFlags, context: CliContext): Promise<OpenRun> {
  const { manifest } = await readRunFolder(runDir);
  const sandbox = createSandbox({ level: manifest.sandboxLevel });
  const { id, module, version } = manifest.harness;
  const harness = await loadHarness(flags.harness ?? module ?? id, context.cwd, sandbox);
  if (harness.id !== id || harness.version !== version) {
    throw new GimbalError(
      "harness-version-mismatch",
      `The run was made with ${id} ${version}; found ${harness.id} ${harness.version}. Give the same one with --harness.`,
    );
  }
  const modelDir = resolve(context.cwd, flags.model ?? manifest.modelDir ?? tinyModelDir);
  return { runDir, sandbox, harness, modelDir, config: manifest.config };
}

async function runTrain(flags: TrainFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  if (flags.replay !== undefined) {
    const replayed = await replayGrpoRun(
      { runDir: resolve(context.cwd, flags.replay), threads: flags.threads },
      context.signal,
    );
    output.text(
      `${replayed.steps} steps replayed; weights ${replayed.isIdentical ? "identical to" : "DIFFERENT from"} the run's.\nsha256 ${replayed.weights}`,
    );
    output.json(replayed);
    if (!replayed.isIdentical) context.setExitCode(1);
    return;
  }
  const open =
    flags.resume === undefined
      ? await createRun(flags, context)
      : await openRun(resolve(context.cwd, flags.resume), flags, context);
  const { harness } = open;
  const preparing = output.bar(`Preparing ${harness.id} ${harness.version}`, 0);
  await harness.prepare({ install: true, signal: context.signal });
  preparing.end("ready");
  await followRun(open, output, context.signal);
}
