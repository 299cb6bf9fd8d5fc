/**
 * `gimbal doctor`: what this machine has, and what to do about what is missing.
 */
import { tinyHarness } from "@gimbal-rl/gimbal-tiny";
import { createPiHarness } from "@gimbal-rl/harness-pi";
import { type Command, Option } from "commander";
import type { CliContext } from "../context.js";
import { type CheckResult, runChecks } from "../doctor-checks.js";

interface DoctorFlags {
  readonly install?: "pi";
  readonly json?: boolean;
}

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("doctor")
    .description(
      "Say what this machine has (harnesses, sandbox, backends, policy, folders) and what to do about what is missing. Fails only when something needed is broken.",
    )
    .addOption(
      new Option("--install <harness>", "install a harness into the cache first").choices(["pi"]),
    )
    .option("--json", "print the result as one JSON object on stdout")
    .addHelpText("after", "\nExamples:\n  $ gimbal doctor\n  $ gimbal doctor --install pi\n")
    .action(async (flags: DoctorFlags) => runDoctor(flags, context));
}

async function runDoctor(flags: DoctorFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  const { signal } = context;
  if (flags.install === "pi") {
    const bar = output.bar(`Installing Pi ${tinyHarness.version}`, 0);
    await createPiHarness({ version: tinyHarness.version }).prepare({ install: true, signal });
    bar.end("installed");
  }
  const checks = await runChecks({ cwd: context.cwd, signal });
  const isOk = checks.every(({ status }) => status !== "broken");
  output.text(toText(checks));
  output.json({ ok: isOk, version: context.version, checks });
  if (!isOk) context.setExitCode(1);
}

function toText(checks: readonly CheckResult[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  const lines = checks.flatMap(({ found, name, next, status }) => {
    const line = `${status.padEnd(7)}  ${name.padEnd(width)}  ${found}`;
    return next === null ? [line] : [line, `${" ".repeat(width + 11)}-> ${next}`];
  });
  const broken = checks.filter(({ status }) => status === "broken").length;
  return `${lines.join("\n")}\n\n${broken === 0 ? "Nothing that is needed is broken." : `${broken} broken; see the arrows.`}\n`;
}
