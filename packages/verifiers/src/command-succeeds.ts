/**
 * `command-succeeds`: a command ends with exit code 0 in the clean copy.
 *
 * Options: `argv`; `timeoutMs` (default 60,000); `maxOutputBytes` (default 1 MiB); `expectedStdout`, compared after
 * {@link normaliseText}. A program that *loads* the agent's code can be ended by it with exit
 * code 0: let it run that code in a child process and print what it found, and compare that with `expectedStdout`.
 *
 * Law: a command that this machine does not have is no verdict on the attempt (not scored). Its exit code 127 does not
 * say so, because any program may end with it: the system is asked.
 */
import type { Evidence, SandboxExit, SandboxInstance, Verifier } from "@gimbal-rl/core";
import { createGradingCopy } from "./grading-copy.js";
import type { NodeLocation } from "./node-location.js";
import { normaliseText } from "./normalise-text.js";
import { readOptions } from "./options.js";
import { evidence, judge, unscored } from "./verdict.js";

const kind = "command-succeeds";

/** Makes the verifier; see the header. */
export function createCommandSucceeds(node: NodeLocation): Verifier {
  return {
    kind,
    verify: async (input, signal) => {
      const options = readOptions(kind, input.task.verifier.options);
      const argv = options.strings("argv") ?? [];
      const timeoutMs = options.number("timeoutMs") ?? 60_000;
      const maxOutputBytes = options.number("maxOutputBytes") ?? 1_048_576;
      const expectedStdout = options.string("expectedStdout");
      options.finish();
      if (argv.length === 0)
        throw options.fail("argv", 'a command, for example ["node", "check.js"]');
      try {
        const { sandbox, task, diff } = input;
        const { readOnlyPaths } = node;
        const copy = await createGradingCopy(sandbox, task, diff, { readOnlyPaths });
        await using instance = copy.instance;
        const env = { PATH: node.path };
        const exit = await instance.run({ argv, env, timeoutMs, maxOutputBytes }, signal);
        if (exit.endedBy === "aborted") return unscored(kind, new Error("stopped by the caller"));
        if (!(await isThere(instance, argv, exit, env, signal))) {
          return unscored(kind, new Error(`there is no command ${argv[0]} on ${node.path}`));
        }
        return judge(kind, input, checkExit(argv, exit, expectedStdout), copy.tampered);
      } catch (error) {
        return unscored(kind, error);
      }
    },
  };
}

/** The shell's codes for a command that is not found, or cannot be started. */
const notStartedCodes: readonly (number | null)[] = [126, 127];

/**
 * Whether the command exists outside of what the agent wrote. A relative path is always counted as there: it names a
 * file of the workspace, and one that is missing is the agent's doing.
 */
async function isThere(
  instance: SandboxInstance,
  argv: readonly string[],
  exit: SandboxExit,
  env: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<boolean> {
  const [name = ""] = argv;
  const isRelative = name.includes("/") && !name.startsWith("/");
  if (!notStartedCodes.includes(exit.exitCode) || isRelative) return true;
  const ask = ["/bin/sh", "-c", 'command -v -- "$1"', "sh", name];
  const limits = { timeoutMs: 10_000, maxOutputBytes: 10_000 };
  const asked = await instance.run({ argv: ask, env, ...limits }, signal);
  return asked.endedBy !== "exit" || asked.exitCode === 0;
}

function checkExit(
  argv: readonly string[],
  exit: SandboxExit,
  expectedStdout: string | undefined,
): readonly Evidence[] {
  const output = `${exit.stdout}${exit.stderr}`.trim();
  const ended = exit.endedBy === "exit" ? `exit code ${exit.exitCode}` : `ended by ${exit.endedBy}`;
  const passed = exit.endedBy === "exit" && exit.exitCode === 0;
  const checks = [evidence("command", passed, `${argv.join(" ")}: ${ended}\n${output}`.trim())];
  if (expectedStdout !== undefined) {
    const equal = normaliseText(exit.stdout) === normaliseText(expectedStdout);
    checks.push(
      evidence(
        "stdout",
        equal,
        equal ? "as expected" : `expected ${JSON.stringify(expectedStdout)}`,
      ),
    );
  }
  return checks;
}
