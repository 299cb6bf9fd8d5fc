/**
 * `node-tests-pass`: the tests of the task, run by `node:test` in the clean copy, end exactly as expected.
 *
 * Options: `files`, test files in the copy; `expected`, full test name (`suite > test`) to `pass`, `fail` or `skip`;
 * `timeoutMs` (default 60,000); `maxOutputBytes` (default 1 MiB). A missing, additional, repeated or differing test
 * fails. One Node process in all. The test files belong into `protectedPaths` or `gradingFiles`.
 *
 * Law: a grader that did not start is no verdict on the attempt (not scored); whatever happens after its start line is
 * the graded code's doing and scores 0, so that nobody turns a 0 into a rerun.
 */
import type { Evidence, SandboxExit, Verifier } from "@gimbal-rl/core";
import { createGradingCopy } from "./grading-copy.js";
import type { NodeLocation } from "./node-location.js";
import { driverScript, reporterScript, startTestName } from "./node-test-scripts.js";
import { readOptions } from "./options.js";
import { evidence, judge, unscored } from "./verdict.js";

const kind = "node-tests-pass";
const statuses: readonly unknown[] = ["pass", "fail", "skip"];
/** Below HOME of the grading copy. */
const scriptDir = ".gimbal-grading";

interface TestResult {
  readonly name: string;
  readonly type: "test" | "suite";
  readonly status: string;
  readonly message: string;
}

/** Makes the verifier; see the header. `createNonce` gives an unguessable text each time. */
export function createNodeTestsPass(node: NodeLocation, createNonce: () => string): Verifier {
  return {
    kind,
    verify: async (input, signal) => {
      const options = readOptions(kind, input.task.verifier.options);
      const files = options.strings("files") ?? [];
      const expected = options.record("expected") ?? {};
      const timeoutMs = options.number("timeoutMs") ?? 60_000;
      const maxOutputBytes = options.number("maxOutputBytes") ?? 1_048_576;
      options.finish();
      if (files.length === 0) throw options.fail("files", "at least one test file");
      const names = Object.entries(expected);
      if (names.length === 0 || !names.every(([, status]) => statuses.includes(status))) {
        throw options.fail("expected", 'test names with "pass", "fail" or "skip"');
      }
      const startMark = createNonce();
      const nonce = createNonce();
      try {
        const copy = await createGradingCopy(input.sandbox, input.task, input.diff, {
          readOnlyPaths: node.readOnlyPaths,
          homeFiles: {
            [`${scriptDir}/nonce`]: `${startMark} ${nonce}`,
            [`${scriptDir}/reporter.mjs`]: reporterScript,
            [`${scriptDir}/driver.mjs`]: driverScript,
          },
        });
        await using instance = copy.instance;
        const scripts = `${instance.homeDir}/${scriptDir}`;
        const argv = [
          node.executable,
          `--test-reporter=${scripts}/reporter.mjs`,
          "--test-reporter-destination=stdout",
          `${scripts}/driver.mjs`,
          ...files,
        ];
        const env = { PATH: node.path };
        const exit = await instance.run({ argv, env, timeoutMs, maxOutputBytes }, signal);
        if (exit.endedBy === "aborted") return unscored(kind, new Error("stopped by the caller"));
        if (!exit.stdout.startsWith(`${startMark}\n`)) return unscored(kind, notStarted(exit));
        return judge(kind, input, checkTests(exit, nonce, expected), copy.tampered);
      } catch (error) {
        return unscored(kind, error);
      }
    },
  };
}

function notStarted(exit: SandboxExit): Error {
  const ended = exit.endedBy === "exit" ? `exit code ${exit.exitCode}` : `ended by ${exit.endedBy}`;
  return new Error(`the grader did not start (${ended})\n${exit.stderr}${exit.stdout}`.trim());
}

function checkTests(
  exit: SandboxExit,
  nonce: string,
  expected: Readonly<Record<string, unknown>>,
): readonly Evidence[] {
  if (exit.endedBy !== "exit") {
    return [evidence("tests", false, `The tests were ended by ${exit.endedBy}.`)];
  }
  const results = parseResults(exit.stdout, nonce);
  if (results === null) {
    const said = `${exit.stderr}${exit.stdout}`.trim();
    const text = `The tests did not run to their end (exit code ${exit.exitCode}).\n${said}`;
    return [evidence("tests", false, text)];
  }
  const checks: Evidence[] = [];
  const seen = new Set<string>();
  for (const { name, status, message } of results) {
    const wanted = Object.hasOwn(expected, name) ? expected[name] : undefined;
    const repeated = seen.has(name);
    seen.add(name);
    const found = `${name}: ${repeated ? "reported again, " : ""}${status}`;
    const passed = !repeated && status === wanted;
    const hint = passed ? "" : `, expected ${wanted ?? "no such test"}${message && `\n${message}`}`;
    checks.push(evidence("test", passed, found + hint));
  }
  for (const name of Object.keys(expected)) {
    if (!seen.has(name)) checks.push(evidence("test", false, `${name}: missing`));
  }
  return checks;
}

/** The one line that begins with the nonce; null when there is none, or more than one. */
function parseResults(stdout: string, nonce: string): readonly TestResult[] | null {
  const lines = stdout.split("\n").filter((line) => line.startsWith(nonce));
  if (lines.length !== 1) return null;
  try {
    const results = JSON.parse(lines[0]?.slice(nonce.length) ?? "") as readonly TestResult[];
    return results.filter(({ name, type }) => type === "test" && name !== startTestName);
  } catch {
    return null;
  }
}
