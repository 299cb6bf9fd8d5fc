/**
 * `gimbal train`: a GRPO run on the desk suite with one's own model, harness or settings, or the continuation of a run.
 */
import { join, resolve } from "node:path";
import { GimbalError, type Harness, type Sandbox } from "@gimbal-rl/core";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { defaultRunConfig } from "@gimbal-rl/run";
import { createSandbox } from "@gimbal-rl/sandbox";
import {
  continueGrpoRun,
  createDeskRun,
  readRunFolder,
  replayGrpoRun,
  tinyPolicySettings,
} from "@gimbal-rl/sdk";
import { type Command, Option } from "commander";
import type { CliContext } from "../context.js";
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
import { createRunProgress, summaryText } from "../run-progress.js";

interface TrainFlags {
  readonly resume?: string;
  readonly replay?: string;
  readonly run?: string;
  readonly model?: string;
  readonly harness?: string;
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
  ...["temperature", "concurrency", "heldout", "heldoutFamily", "sandbox"],
];

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("train")
    .description("Train with GRPO on the desk suite, or continue a run from its folder.")
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
    .option("--seed <n>", "seed of everything random", parseSeed, 1)
    .option("--steps <n>", "training steps", parseCount)
    .option("--groups <n>", "groups (tasks) per step", parseCount)
    .option("--group-size <n>", "attempts per group", parseGroupSize)
    .option("--learning-rate <x>", "AdamW learning rate", parsePositive)
    .option("--kl <x>", "coefficient of the KL to the start", parseNotNegative)
    .option("--epochs <n>", "updates per step", parseCount)
    .option("--temperature <x>", "sampling temperature", parsePositive)
    .option("--concurrency <n>", "attempts at once", parseCount)
    .option("--heldout <n>", "held-out tasks evaluated before and after", parseNatural)
    .option("--heldout-family <n>", "tasks of the held-out family", parseNatural)
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

/** A run folder with what continues it. */
interface OpenRun {
  readonly runDir: string;
  readonly sandbox: Sandbox;
  readonly harness: Harness;
  readonly modelDir: string;
  readonly steps: number;
}

async function createRun(flags: TrainFlags, context: CliContext): Promise<OpenRun> {
  const runDir = resolveRunDir(context, "train", flags);
  const sandbox = createSandbox({ level: flags.sandbox });
  const name = flags.harness ?? "pi";
  const harness = await loadHarness(name, context.cwd, sandbox);
  const module = harnessModule(name, context.cwd);
  const modelDir = resolve(context.cwd, flags.model ?? tinyModelDir);
  const { evaluation } = defaultRunConfig;
  const { steps } = await createDeskRun({
    runDir,
    seed: flags.seed,
    threads: flags.threads,
    modelDir,
    harness: {
      id: harness.id,
      version: harness.version,
      ...(module === null ? {} : { module }),
    },
    sandboxLevel: sandbox.level,
    settings: {
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
      evaluation: {
        heldoutTasks: flags.heldout ?? evaluation.heldoutTasks,
        heldoutFamilyTasks: flags.heldoutFamily ?? evaluation.heldoutFamilyTasks,
      },
    },
  });
  return { runDir, sandbox, harness, modelDir, steps };
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
  return { runDir, sandbox, harness, modelDir, steps: manifest.config.steps };
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
  const { harness, modelDir, runDir, sandbox, steps } =
    flags.resume === undefined
      ? await createRun(flags, context)
      : await openRun(resolve(context.cwd, flags.resume), flags, context);
  const preparing = output.bar(`Preparing ${harness.id} ${harness.version}`, 0);
  await harness.prepare({ install: true, signal: context.signal });
  preparing.end("ready");
  output.line(`Run folder ${runDir}; sandbox level ${sandbox.level}.`);
  const summary = await continueGrpoRun(
    {
      runDir,
      harness,
      sandbox,
      modelDir,
      onEvent: createRunProgress(output, steps),
    },
    context.signal,
  );
  output.text(`\n${summaryText(summary)}\nReport: ${join(runDir, "report.html")}`);
  output.json(summary);
}
