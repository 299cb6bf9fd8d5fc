/**
 * `file-state-equals`: the files an attempt left behind are what the task asks for. Runs nothing, so it costs nothing.
 *
 * Options: `files`, path to expectation ({@link FileExpectation}); `othersUnchanged` (default false), nothing else may
 * differ from the task's files; `ignore`, paths or folders ending in `/` that `othersUnchanged` does not look at.
 */
import type { Evidence, Task, Verifier } from "@gimbal-rl/core";
import { buildGradingFiles, isProtectedPath } from "./grading-copy.js";
import { normaliseText } from "./normalise-text.js";
import { isRecord, type OptionReader, readOptions } from "./options.js";
import { evidence, judge } from "./verdict.js";

/** What one file must be. A plain string means exact. */
export type FileExpectation =
  | string
  | { readonly exact: string }
  /** Equal after {@link normaliseText}. */
  | { readonly normalised: string }
  /** Matches somewhere; `flags` as in JavaScript. */
  | { readonly regex: string; readonly flags?: string }
  | { readonly absent: true }
  | { readonly unchanged: true };

const kind = "file-state-equals";
const expectationHelp =
  'a string, {"exact":…}, {"normalised":…}, {"regex":…,"flags":…}, {"absent":true} or {"unchanged":true}';

type Check = (text: string | undefined, original: string | undefined) => string | null;

/** The verifier; see the header. */
export const fileStateEquals: Verifier = {
  kind,
  verify: async (input) => {
    const { task, diff } = input;
    const options = readOptions(kind, task.verifier.options);
    const wanted = options.record("files") ?? {};
    const strict = options.boolean("othersUnchanged") ?? false;
    const ignored = options.strings("ignore") ?? [];
    options.finish();
    if (Object.keys(wanted).length === 0 && !strict) {
      throw options.fail("files", "at least one file, or othersUnchanged");
    }
    const { files, tampered } = buildGradingFiles(task, diff);
    const checks: Evidence[] = [];
    for (const [path, expectation] of Object.entries(wanted)) {
      const problem = parseExpectation(expectation, options)(files[path], own(task.files, path));
      checks.push(evidence("file", problem === null, `${path}: ${problem ?? "as expected"}`));
    }
    if (strict)
      checks.push(
        checkOthers(
          task,
          files,
          (path) => Object.hasOwn(wanted, path) || isProtectedPath(path, ignored),
        ),
      );
    return judge(kind, input, checks, tampered);
  },
};

function checkOthers(
  task: Task,
  files: Readonly<Record<string, string>>,
  isExempt: (path: string) => boolean,
): Evidence {
  const paths = new Set([...Object.keys(files), ...Object.keys(task.files)]);
  const differing = [...paths].filter(
    (path) =>
      !isExempt(path) &&
      !Object.hasOwn(task.gradingFiles, path) &&
      files[path] !== own(task.files, path),
  );
  const text =
    differing.length === 0
      ? "nothing else changed"
      : `also changed: ${differing.sort().slice(0, 20).join(", ")}`;
  return evidence("others-unchanged", differing.length === 0, text);
}

function own(record: Readonly<Record<string, string>>, path: string): string | undefined {
  return Object.hasOwn(record, path) ? record[path] : undefined;
}

/** Each check says what is wrong, or null. */
function parseExpectation(value: unknown, options: OptionReader): Check {
  if (typeof value === "string") return exactly(value);
  if (isRecord(value)) {
    if (typeof value.exact === "string") return exactly(value.exact);
    if (typeof value.normalised === "string") return normalisedTo(value.normalised);
    if (typeof value.regex === "string") return matching(value.regex, value.flags, options);
    if (value.absent === true) return (text) => (text === undefined ? null : "exists, must not");
    if (value.unchanged === true) {
      return (text, original) => (text === original ? null : "changed, must not");
    }
  }
  throw options.fail("files", `for each path ${expectationHelp}`);
}

function exactly(wanted: string): Check {
  return (text) => (text === wanted ? null : describeDifference(text, wanted));
}

function normalisedTo(wanted: string): Check {
  const target = normaliseText(wanted);
  return (text) =>
    text !== undefined && normaliseText(text) === target ? null : describeDifference(text, wanted);
}

function matching(pattern: string, flags: unknown, options: OptionReader): Check {
  let regex: RegExp;
  try {
    // Sticky and global would make the result depend on earlier calls.
    regex = new RegExp(pattern, String(flags ?? "").replace(/[gy]/g, ""));
  } catch {
    throw options.fail("files", `valid regular expressions (found ${pattern})`);
  }
  return (text) => {
    if (text === undefined) return "missing";
    return regex.test(text) ? null : `does not match ${regex}`;
  };
}

function describeDifference(text: string | undefined, wanted: string): string {
  if (text === undefined) return "missing";
  const found = text.split("\n");
  const expected = wanted.split("\n");
  const index = expected.findIndex((line, i) => line !== found[i]);
  const at = index === -1 ? expected.length : index;
  const show = (line: string | undefined): string =>
    line === undefined ? "end of file" : JSON.stringify(line.slice(0, 200));
  return `line ${at + 1} is ${show(found[at])}, expected ${show(expected[at])}`;
}
