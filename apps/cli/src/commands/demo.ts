/**
 * `gimbal demo`: the main job on the embedded default.
 */
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { createSandbox } from "@gimbal-rl/sandbox";
import { createDeskRun, demoSettings, quickDemoSettings } from "@gimbal-rl/sdk";
import { type Command, Option } from "commander";
import type { CliContext } from "../context.js";
import { followRun } from "../follow-run.js";
import { loadHarness } from "../load-harness.js";
import { parseCount, parseSeed, parseThreads } from "../option-values.js";
import { resolveRunDir } from "../run-dir.js";

interface DemoFlags {
  readonly seed: number;
  readonly quick?: boolean;
  readonly control?: "shuffled-rewards";
  readonly run?: string;
  readonly steps?: number;
  readonly sandbox: "auto" | "process" | "namespace";
  readonly threads: number;
  readonly json?: boolean;
}

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("demo")
    .description(
      "Take the bundled tiny policy, run it inside the real Pi on small repository tasks, train it with GRPO, and show held-out pass@1 before and after.",
    )
    .option("--seed <n>", "seed of everything random", parseSeed, 1)
    .option("--quick", "the same road in under a minute; says nothing about the gain")
    .addOption(
      new Option("--control <kind>", "a run that must show no gain").choices(["shuffled-rewards"]),
    )
    .option("--run <folder>", "run folder (default: runs/demo-<seed>-<time>)")
    .option("--steps <n>", "training steps", parseCount)
    .addOption(
      new Option("--sandbox <level>", "where attempts run")
        .choices(["auto", "process", "namespace"])
        .default("auto"),
    )
    .option("--threads <n>", "trainer threads", parseThreads, 2)
    .option("--json", "print the result as one JSON object on stdout")
    .addHelpText("after", "\nExample:\n  $ gimbal demo --seed 2\n")
    .action(async (flags: DemoFlags) => runDemo(flags, context));
}

async function runDemo(flags: DemoFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  const { seed, threads } = flags;
  const runDir = resolveRunDir(context, "demo", flags);
  const sandbox = createSandbox({ level: flags.sandbox });
  const harness = await loadHarness("pi", context.cwd, sandbox);
  const preparing = output.bar(`Preparing ${harness.id} ${harness.version}`, 0);
  await harness.prepare({ install: true, signal: context.signal });
  preparing.end("ready");
  const config = await createDeskRun({
    runDir,
    seed,
    threads,
    modelDir: tinyModelDir,
    harness,
    sandboxLevel: sandbox.level,
    settings: {
      ...(flags.quick ? quickDemoSettings : demoSettings),
      control: flags.control ?? null,
      ...(flags.steps === undefined ? {} : { steps: flags.steps }),
    },
  });
  await followRun(
    { runDir, harness, sandbox, modelDir: tinyModelDir, config },
    output,
    context.signal,
  );
}
