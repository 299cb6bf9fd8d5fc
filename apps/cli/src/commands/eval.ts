/**
 * `gimbal eval`: pass@k of a model folder on a desk split, with bootstrap intervals over tasks.
 */
import { resolve } from "node:path";
import { createDeskTasks, type DeskSplit } from "@gimbal-rl/desk";
import { suitePassAtK } from "@gimbal-rl/eval";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { createSandbox } from "@gimbal-rl/sandbox";
import { runTasks } from "@gimbal-rl/sdk";
import { type Command, Option } from "commander";
import type { CliContext } from "../context.js";
import { usageError } from "../errors.js";
import { loadHarness } from "../load-harness.js";
import { parseCount, parseNotNegative, parseSeed } from "../option-values.js";
import { formatTable } from "../output.js";
import { resolveRunDir } from "../run-dir.js";

interface EvalFlags {
  readonly model: string;
  readonly harness: string;
  readonly split: DeskSplit;
  readonly tasks: number;
  readonly samples: number;
  readonly k: number;
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
    .command("eval")
    .description("Measure pass@k of a model folder on the desk suite, inside a harness.")
    .option("--model <folder>", "Hugging Face model folder", tinyModelDir)
    .option("--harness <name>", "pi, or a module that exports a harness by default", "pi")
    .addOption(
      new Option("--split <name>", "which tasks")
        .choices(["train", "heldout", "heldout-family", "demonstration", "pivot"])
        .default("heldout"),
    )
    .option("--tasks <n>", "number of tasks", parseCount, 64)
    .option("--samples <n>", "attempts per task", parseCount, 1)
    .option("-k <n>", "k of pass@k, at most the samples", parseCount, 1)
    .option("--seed <n>", "seed of tasks and sampling", parseSeed, 1)
    .option("--temperature <x>", "sampling temperature", parseNotNegative, 1)
    .option("--concurrency <n>", "attempts at once", parseCount, 4)
    .addOption(
      new Option("--sandbox <level>", "where attempts run")
        .choices(["auto", "process", "namespace"])
        .default("auto"),
    )
    .option("--run <folder>", "where attempts are stored (default: runs/eval-<seed>-<time>)")
    .option("--json", "print the result as one JSON object on stdout")
    .addHelpText("after", "\nExample:\n  $ gimbal eval --tasks 32 --samples 4 -k 2\n")
    .action(async (flags: EvalFlags) => runEval(flags, context));
}

async function runEval(flags: EvalFlags, context: CliContext): Promise<void> {
  if (flags.k > flags.samples) {
    throw usageError(`-k ${flags.k} needs at least ${flags.k} samples; raise --samples.`);
  }
  const output = context.output(flags);
  const { concurrency, k, samples, seed, split, temperature } = flags;
  const runDir = resolveRunDir(context, "eval", flags);
  const sandbox = createSandbox({ level: flags.sandbox });
  const harness = await loadHarness(flags.harness, context.cwd, sandbox);
  await harness.prepare({ install: true, signal: context.signal });
  const tasks = createDeskTasks({ split, seed, count: flags.tasks });
  const bar = output.bar("Attempts", tasks.length * samples);
  let passed = 0;
  const result = await runTasks(
    {
      ...{ runDir, harness, sandbox, tasks, samples, seed, temperature, concurrency },
      modelDir: resolve(context.cwd, flags.model),
      label: `eval-${split}`,
      onAttempt: (record, done) => {
        if (record.verdict.score === 1) passed += 1;
        bar.update(done, `${passed} passed`);
      },
    },
    context.signal,
  );
  bar.end();
  const passAt = suitePassAtK(result, k, { seed });
  const families = [...new Set(result.tasks.map((task) => task.family))];
  const rows = families.map((family) => {
    const own = { ...result, tasks: result.tasks.filter((task) => task.family === family) };
    const { high, low, mean } = suitePassAtK(own, k, { seed });
    return { family, tasks: own.tasks.length, passAtK: mean, ci95: [low, high] as const };
  });
  const percent = (value: number): string => `${(100 * value).toFixed(1)} %`;
  const line = (name: string, n: number, mean: number, [low, high]: readonly [number, number]) => [
    ...[name, String(n), percent(mean), `${percent(low)} to ${percent(high)}`],
  ];
  output.text(
    formatTable(
      [`pass@${k}`, "n", "mean", "95 % interval"],
      [
        line("all", result.tasks.length, passAt.mean, [passAt.low, passAt.high]),
        ...rows.map((row) => line(row.family, row.tasks, row.passAtK, row.ci95)),
      ],
    ),
  );
  const failures: Record<string, number> = {};
  for (const { failureClass } of result.records) {
    failures[failureClass] = (failures[failureClass] ?? 0) + 1;
  }
  output.json({
    ...{ split, k, samples, seed, temperature },
    harness: harness.id,
    harnessVersion: harness.version,
    tasks: result.tasks.length,
    passAtK: passAt.mean,
    ci95: [passAt.low, passAt.high],
    families: rows,
    failures,
    runDir,
  });
}
