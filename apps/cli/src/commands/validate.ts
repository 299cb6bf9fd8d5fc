/**
 * `gimbal validate`: grades everything a run has stored.
 */
import { resolve } from "node:path";
import type { Command } from "commander";
import type { CliContext } from "../context.js";
import { findingLines } from "../run-findings.js";
import { type Validation, validateRun } from "../run-validation.js";
import { openStoredRun } from "../stored-run.js";

interface ValidateFlags {
  readonly blobs: boolean;
  readonly json?: boolean;
}

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("validate")
    .description(
      "Grade every stored call and trajectory of a run, check that blobs are intact, that nothing was lost or counted twice, and that steps agree with checkpoints. Exit code 1 on a fatal finding.",
    )
    .argument("<run>", "run folder")
    .option("--no-blobs", "do not read raw bodies (faster)")
    .option("--json", "print the result as one JSON object on stdout")
    .addHelpText("after", "\nExample:\n  $ gimbal validate runs/mine\n")
    .action(async (folder: string, flags: ValidateFlags) => validate(folder, flags, context));
}

async function validate(folder: string, flags: ValidateFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  const { signal } = context;
  await using run = await openStoredRun(resolve(context.cwd, folder));
  const bar = output.bar("Sessions", 0);
  const validation = await validateRun(run, {
    blobs: flags.blobs,
    signal,
    onProgress: (sessions) => bar.update(sessions),
  });
  bar.end();
  const { counts, findings } = validation;
  const fatal = findings.of("fatal");
  output.text(toText(run.runDir, validation));
  output.json({
    runDir: run.runDir,
    ok: fatal.length === 0,
    counts,
    coverage: counts.sampledTokens === 0 ? 1 : counts.trainedTokens / counts.sampledTokens,
    fatal,
    warn: findings.of("warn"),
    info: findings.of("info"),
  });
  if (fatal.length > 0) context.setExitCode(1);
}

function toText(runDir: string, { counts, findings }: Validation): string {
  const lines = [
    runDir,
    `${counts.events} events, ${counts.calls} calls, ${counts.blobs} raw bodies read, ${counts.attempts} finished attempts, ${counts.discarded} discarded tries`,
    `${counts.trajectories} trajectories with ${counts.branches} branches, ${counts.trainedTokens} of ${counts.sampledTokens} sampled tokens trainable, ${counts.steps} steps, ${counts.checkpoints} checkpoints`,
  ];
  for (const level of ["fatal", "warn", "info"] as const) {
    const own = findings.of(level);
    lines.push("", `${level}: ${own.length}`, ...findingLines(own));
  }
  return `${lines.join("\n")}\n`;
}
