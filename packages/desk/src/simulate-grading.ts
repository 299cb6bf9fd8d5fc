/**
 * Grading without processes, for prototypes and tests of a learner; real runs use `@gimbal-rl/verifiers`.
 *
 * Law: agrees with the task's verifier as long as sources keep the one-line form of the suite; a source in any other
 * form counts as wrong here, where the hidden tests would run it.
 */
import type { Task, VerifierSpec } from "@gimbal-rl/core";
import { buildGradingFiles, normaliseText } from "@gimbal-rl/verifiers";
import { hiddenCases, hiddenSourcePath } from "./hidden-cases.js";
import type { DeskFiles } from "./simulate-tool.js";

type Gradable = Pick<Task, "files" | "protectedPaths" | "gradingFiles" | "verifier">;

/** Whether the workspace is as the task wants it. Changes of protected paths do not count. */
export function simulateDeskGrading(task: Gradable, files: DeskFiles): boolean {
  const paths = new Set([...Object.keys(task.files), ...Object.keys(files)]);
  const differing = [...paths].filter((path) => files[path] !== task.files[path]);
  const changed = Object.fromEntries(differing.map((path) => [path, files[path] ?? null]));
  const copy = buildGradingFiles(task, { changed, refused: [] }).files;
  return passes(task, task.verifier, copy);
}

function passes(task: Gradable, { kind, options }: VerifierSpec, files: DeskFiles): boolean {
  if (kind === "all") {
    const parts = options.verifiers as readonly VerifierSpec[];
    return parts.every((one) => passes(task, one, files));
  }
  if (kind === "node-tests-pass") {
    return Object.values(task.gradingFiles).every((test) => passesHiddenTest(test, files));
  }
  const wanted = options.files as Readonly<Record<string, { readonly normalised?: string }>>;
  return Object.entries(wanted).every(([path, { normalised }]) =>
    normalised === undefined
      ? files[path] === task.files[path]
      : files[path] !== undefined && normaliseText(files[path]) === normaliseText(normalised),
  );
}

/** Applies the table of cases inside a hidden test. */
function passesHiddenTest(test: string, files: DeskFiles): boolean {
  const source = files[hiddenSourcePath(test)] ?? "";
  return hiddenCases(test).every(([name, a, b, wanted]) => {
    const line = new RegExp(`^exports\\.${name} = \\(a, b\\) => a ([-+*/]) b;$`, "m");
    const operator = line.exec(source)?.[1] ?? "";
    return { "+": a + b, "-": a - b, "*": a * b, "/": a / b }[operator] === wanted;
  });
}
