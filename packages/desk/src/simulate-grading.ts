/**
 * Grading without processes, for prototypes and tests of a learner; real runs use `@gimbal-rl/verifiers`.
 *
 * Law: agrees with the task's verifier as long as sources keep the one-line form of the suite; a source in any other
 * form counts as wrong here, where the hidden tests would run it.
 */
import type { Task, VerifierSpec } from "@gimbal-rl/core";
import type { DeskFiles } from "./simulate-tool.js";

type Gradable = Pick<Task, "files" | "protectedPaths" | "gradingFiles" | "verifier">;

/** Whether the workspace is as the task wants it. Changes of protected paths are undone first. */
export function simulateDeskGrading(task: Gradable, files: DeskFiles): boolean {
  const isProtected = (path: string): boolean =>
    task.protectedPaths.some((one) => one === path || (one.endsWith("/") && path.startsWith(one)));
  const kept = Object.entries(files).filter(([path]) => !isProtected(path));
  const original = Object.entries(task.files).filter(([path]) => isProtected(path));
  return passes(task, task.verifier, Object.fromEntries([...kept, ...original]));
}

function passes(task: Gradable, { kind, options }: VerifierSpec, files: DeskFiles): boolean {
  if (kind === "all") {
    const parts = options.verifiers as readonly VerifierSpec[];
    return parts.every((one) => passes(task, one, files));
  }
  if (kind === "node-tests") {
    return Object.values(task.gradingFiles).every((test) => passesHiddenTest(test, files));
  }
  const wanted = options.files as Readonly<Record<string, { readonly equals: string }>>;
  return Object.entries(wanted).every(([path, { equals }]) => files[path] === equals);
}

/** Applies the table of cases inside a hidden test of fix-operator. */
function passesHiddenTest(test: string, files: DeskFiles): boolean {
  const path = /readFileSync\("([^"]+)"/.exec(test)?.[1] ?? "";
  const table = /want\] of (\[.*\])\) \{$/m.exec(test)?.[1] ?? "[]";
  const cases = JSON.parse(table) as readonly (readonly [string, number, number, number])[];
  return cases.every(([name, a, b, want]) => {
    const line = new RegExp(`^exports\\.${name} = \\(a, b\\) => a ([-+*/]) b;$`, "m");
    const operator = line.exec(files[path] ?? "")?.[1] ?? "";
    return { "+": a + b, "-": a - b, "*": a * b, "/": a / b }[operator] === want;
  });
}
