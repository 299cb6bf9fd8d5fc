/**
 * `gimbal eval`: pass@k of a model folder on a desk split or a task file, with intervals over tasks.
 */
import { type IntervalEnds, intervalText, suitePassAtK } from "@gimbal-rl/eval";
import type { Command } from "commander";
import {
  type AttemptFlags,
  addAttemptOptions,
  chooseTasks,
  runAttempts,
} from "../attempt-options.js";
import type { CliContext } from "../context.js";
import { usageError } from "../errors.js";
import { percent } from "../format.js";
import { parseCount } from "../option-values.js";
import { formatTable } from "../output.js";

interface EvalFlags extends AttemptFlags {
  readonly k: number;
}

const kind = "eval";

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  const command = program
    .command("eval")
    .description(
      "Measure pass@k of a model folder on a desk split or on tasks of your own, inside a harness.",
    );
  addAttemptOptions(command, { kind, split: "heldout", tasks: 64, samples: 1 })
    .option("-k <n>", "k of pass@k, at most the samples", parseCount, 1)
    .addHelpText("after", "\nExample:\n  $ gimbal eval --tasks 32 --samples 4 -k 2\n")
    .action(async (flags: EvalFlags) => runEval(flags, context));
}

async function runEval(flags: EvalFlags, context: CliContext): Promise<void> {
  if (flags.k > flags.samples) {
    throw usageError(`-k ${flags.k} needs at least ${flags.k} samples; raise --samples.`);
  }
  const output = context.output(flags);
  const { k, samples, seed, temperature } = flags;
  const split = flags.taskFile === undefined ? flags.split : "file";
  const { harness, result, runDir } = await runAttempts(flags, context, output, {
    kind,
    label: `eval-${split}`,
    tasks: await chooseTasks(flags, context),
  });
  const passAt = suitePassAtK(result, k, { seed });
  const families = [...new Set(result.tasks.map((task) => task.family))];
  const rows = families.map((family) => {
    const own = { ...result, tasks: result.tasks.filter((task) => task.family === family) };
    return { family, tasks: own.tasks.length, interval: suitePassAtK(own, k, { seed }) };
  });
  const line = (name: string, n: number, mean: number, ends: IntervalEnds) => [
    ...[name, String(n), percent(mean), intervalText(ends, n, percent)],
  ];
  output.text(
    formatTable(
      [`pass@${k}`, "n", "mean", "95 % interval"],
      [
        line("all", result.tasks.length, passAt.mean, passAt),
        ...rows.map((row) => line(row.family, row.tasks, row.interval.mean, row.interval)),
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
    intervalMethod: passAt.method,
    families: rows.map(({ family, interval, tasks }) => {
      return { family, tasks, passAtK: interval.mean, ci95: [interval.low, interval.high] };
    }),
    failures,
    runDir,
  });
}
