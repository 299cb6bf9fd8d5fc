/**
 * Arguments -> exit code. Everything a command throws ends here as one line.
 */
import { Command } from "commander";
import { type CommandEntry, commandList } from "./command-list.js";
import type { OwnedContext } from "./context.js";
import { describeFailure } from "./errors.js";

/** What {@link runCli} may be told. */
export interface RunCliOptions {
  /** The exit code of a stop that the user asked for; null while nobody did. */
  readonly signalExitCode?: () => number | null;
  /** Default: all commands. */
  readonly commands?: readonly CommandEntry[];
}

function createProgram(context: OwnedContext): Command {
  return new Command("gimbal")
    .description("Trains coding agents by reinforcement learning inside their unmodified harness.")
    .version(context.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .showSuggestionAfterError(true)
    .addHelpText("after", "\nExample:\n  $ gimbal demo --quick\n")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.stdout.write(text),
      writeErr: (text) => context.stderr.write(text),
      // The failure is printed once, by runCli.
      outputError: () => {},
    });
}

/** The command's name in the arguments; `help x` names x too. */
function nameOf(argv: readonly string[]): string | undefined {
  const words = argv.filter((word) => !word.startsWith("-"));
  return words[0] === "help" ? words[1] : words[0];
}

/**
 * Runs one command line. Never throws.
 * @param argv - Arguments after the program's name.
 * @returns 0 done, 1 failed, 2 bad usage, 130 or 143 stopped by a signal.
 */
export async function runCli(
  argv: readonly string[],
  context: OwnedContext,
  options: RunCliOptions = {},
): Promise<number> {
  const commands = options.commands ?? commandList;
  const chosen = commands.find((entry) => entry.name === nameOf(argv));
  try {
    const program = createProgram(context);
    if (chosen !== undefined) {
      (await chosen.load()).register(program, context);
    } else {
      for (const { name, summary } of commands) {
        // Only their help lines are needed; a name that is none of them is refused below.
        program.command(name).description(summary).allowUnknownOption().allowExcessArguments();
      }
      if (argv.length === 0) program.help({ error: true });
    }
    await program.parseAsync([...argv], { from: "user" });
    return context.exitCode();
  } catch (error) {
    context.close();
    const failure = describeFailure(error, options.signalExitCode?.() ?? null, chosen?.name);
    if (failure.message !== null) context.stderr.write(`gimbal: ${failure.message}\n`);
    if (context.env.GIMBAL_DEBUG === "1" && failure.message !== null) {
      context.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    }
    return failure.exitCode;
  } finally {
    context.close();
  }
}
