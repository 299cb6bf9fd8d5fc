/**
 * Writing and removing the folders of one instance.
 *
 * Law: writing never follows a link that an agent left behind; removing succeeds on folders without permissions.
 */
import { execFile } from "node:child_process";
import { constants } from "node:fs";
import { lchown, lstat, mkdir, open, rm, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { requireSafeRelativePath } from "./relative-path.js";

const execute = promisify(execFile);

/**
 * Writes one text file below `root`, making folders as needed. A link or special file in its place is replaced.
 *
 * @param owner - User and group id that gets it; null = ours.
 * @throws {GimbalError} `invalid-request` for an unsafe path.
 */
export async function writeFileBelow(
  root: string,
  path: string,
  text: string,
  owner: number | null = null,
): Promise<void> {
  const target = join(root, requireSafeRelativePath(path));
  await makePlainFolders(root, dirname(path), owner);
  const existing = await lstat(target).catch(() => null);
  if (existing !== null && !existing.isFile()) await removeTree(target);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
  const file = await open(target, flags, 0o644);
  try {
    await file.writeFile(text, "utf8");
    if (owner !== null) await file.chown(owner, owner);
  } finally {
    await file.close();
  }
}

/** Hands a file or folder to a user and group id. */
export async function giveAway(path: string, owner: number | null): Promise<void> {
  if (owner !== null) await lchown(path, owner, owner);
}

/** Writes files in sorted order. */
export async function writeTree(
  root: string,
  files: Readonly<Record<string, string>>,
  owner: number | null = null,
): Promise<void> {
  for (const path of Object.keys(files).sort()) {
    await writeFileBelow(root, path, files[path] ?? "", owner);
  }
}

/** Makes each folder of a relative path in turn; anything that is not a real folder is replaced. */
async function makePlainFolders(
  root: string,
  relative: string,
  owner: number | null,
): Promise<void> {
  if (relative === "." || relative === "") return;
  let current = root;
  for (const part of relative.split("/")) {
    current = join(current, part);
    const existing = await lstat(current).catch(() => null);
    if (existing?.isDirectory()) continue;
    if (existing !== null) await unlink(current);
    await mkdir(current, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    await giveAway(current, owner);
  }
}

/**
 * Removes a file or folder, also when an agent took all permissions from it or nested it deeper than a path can name.
 * Links are removed, not followed.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3, retryDelay: 20 });
  } catch {
    // The system tools walk by descriptor, so they get below PATH_MAX where Node does not.
    await execute("chmod", ["-R", "u+rwX", "--", path]).catch(() => undefined);
    await execute("rm", ["-rf", "--", path]);
  }
}
