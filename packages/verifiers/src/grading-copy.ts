/**
 * The clean copy in which attempts are graded.
 *
 * Laws: only the agent's diff crosses over, and never onto a protected path; grading files are laid last, so nothing the
 * agent wrote can take their place. Pure up to the sandbox that is passed in.
 */
import type { Sandbox, SandboxInstance, Task, WorkspaceDiff } from "@gimbal-rl/core";

/** The files of a grading copy. */
export interface GradingFiles {
  readonly files: Readonly<Record<string, string>>;
  /** Protected paths that the agent changed, deleted or stood in the way of. */
  readonly tampered: readonly string[];
}

/** Whether a path is one of `protectedPaths` or below one that ends in `/`. */
export function isProtectedPath(path: string, protectedPaths: readonly string[]): boolean {
  return protectedPaths.some((entry) =>
    entry.endsWith("/") ? `${path}/`.startsWith(entry) : path === entry,
  );
}

/** Applies a diff to the task's own files. */
export function buildGradingFiles(
  task: Pick<Task, "files" | "protectedPaths" | "gradingFiles">,
  diff: WorkspaceDiff,
): GradingFiles {
  const files = new Map(Object.entries(task.files));
  const tampered = new Set<string>();
  const changes = Object.entries(diff.changed);
  for (const [path, text] of changes) {
    if (isProtectedPath(path, task.protectedPaths)) tampered.add(path);
    else if (text === null) files.delete(path);
  }
  for (const { path } of diff.refused) {
    if (path !== "" && isProtectedPath(path, task.protectedPaths)) tampered.add(path);
  }
  // Deletions first: a folder may have made room for a file of its name.
  const taken = new Set([...files.keys(), ...Object.keys(task.gradingFiles)]);
  const folders = new Set([...taken].flatMap(foldersOf));
  for (const [path, text] of changes) {
    if (text === null || tampered.has(path)) continue;
    const parents = foldersOf(path);
    if (folders.has(path) || parents.some((parent) => taken.has(parent))) {
      tampered.add(path);
      continue;
    }
    files.set(path, text);
    taken.add(path);
    for (const parent of parents) folders.add(parent);
  }
  for (const [path, text] of Object.entries(task.gradingFiles)) files.set(path, text);
  return { files: toRecord(files), tampered: [...tampered].sort() };
}

/** `a/b/c` to `a`, `a/b`. */
function foldersOf(path: string): string[] {
  const parts = path.split("/");
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

/** What else the copy needs. */
export interface GradingCopyOptions {
  readonly homeFiles?: Readonly<Record<string, string>>;
  readonly readOnlyPaths?: readonly string[];
}

/** Makes the copy as a sandbox instance; the caller disposes of it. */
export async function createGradingCopy(
  sandbox: Sandbox,
  task: Pick<Task, "files" | "protectedPaths" | "gradingFiles">,
  diff: WorkspaceDiff,
  options: GradingCopyOptions = {},
): Promise<{ readonly instance: SandboxInstance; readonly tampered: readonly string[] }> {
  const { files, tampered } = buildGradingFiles(task, diff);
  const instance = await sandbox.create({
    files,
    homeFiles: options.homeFiles ?? {},
    readOnlyPaths: options.readOnlyPaths ?? [],
  });
  return { instance, tampered };
}

/** Without a prototype, because an agent may call a file "__proto__". */
function toRecord(files: ReadonlyMap<string, string>): Record<string, string> {
  const record = Object.create(null) as Record<string, string>;
  for (const [path, text] of files) record[path] = text;
  return record;
}
