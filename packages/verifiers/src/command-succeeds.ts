/**
 * `command-succeeds`: a command ends with exit code 0 in the clean copy.
 *
 * Options: `argv`; `timeoutMs` (default 60,000); `maxOutputBytes` (default 1 MiB); `expectedStdout`, compared after
 * blanks at line ends and the end are dropped. A program that *loads* the agent's code can be ended by it with exit
 * code 0: let it run that code in a child process and print what it found, and compare that with `expectedStdout`.
 */
import type { Evidence, SandboxExit, Verifier } from "@gimbal-rl/core";
import { createGradingCopy } from "./grading-copy.js";
import type { NodeLocation } from "./node-location.js";
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
        return judge(kind, input, checkExit(argv, exit, expectedStdout), copy.tampered);
      } catch (error) {
        return unscored(kind, error);
      }
    },
  };
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
    const equal = trimLines(exit.stdout) === trimLines(expectedStdout);
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

function trimLines(text: string): string {
  return text
    .replaceAll("\r\n", "\n")
    .replace(/[ \t]+$/gm, "")
    .trimEnd();
}
