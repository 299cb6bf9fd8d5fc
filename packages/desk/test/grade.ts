/**
 * The grading law of `core`, spelled out once more in its plainest form, independent of `@gimbal-rl/verifiers`: a
 * clean copy, the agent's diff without protected paths, the grading files, the verifier spec.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Task, VerifierSpec } from "@gimbal-rl/core";
import type { Changed } from "./cheats.js";

export async function grade(task: Task, changed: Changed): Promise<number> {
  const files = new Map(Object.entries(task.files));
  for (const [path, text] of Object.entries(changed)) {
    if (task.protectedPaths.some((one) => path === one || path.startsWith(one))) continue;
    if (text === null) files.delete(path);
    else files.set(path, text);
  }
  for (const [path, text] of Object.entries(task.gradingFiles)) files.set(path, text);
  return (await passes(task.verifier, files)) ? 1 : 0;
}

async function passes(spec: VerifierSpec, files: ReadonlyMap<string, string>): Promise<boolean> {
  if (spec.kind === "node-tests") return passesTests(spec.options.files as string[], files);
  if (spec.kind === "file-state") {
    const wanted = spec.options.files as Record<string, { readonly equals: string }>;
    return Object.entries(wanted).every(([path, { equals }]) => files.get(path) === equals);
  }
  for (const one of spec.options.verifiers as VerifierSpec[]) {
    if (!(await passes(one, files))) return false;
  }
  return true;
}

async function passesTests(
  tests: readonly string[],
  files: ReadonlyMap<string, string>,
): Promise<boolean> {
  const cwd = await mkdtemp(join(tmpdir(), "desk-grade-"));
  try {
    for (const [path, text] of files) {
      await mkdir(dirname(join(cwd, path)), { recursive: true });
      await writeFile(join(cwd, path), text);
    }
    return await new Promise((resolve) => {
      const env = { PATH: process.env.PATH };
      execFile(process.execPath, ["--test", ...tests], { cwd, env, timeout: 20_000 }, (error) => {
        resolve(error === null);
      });
    });
  } finally {
    await rm(cwd, { recursive: true });
  }
}
