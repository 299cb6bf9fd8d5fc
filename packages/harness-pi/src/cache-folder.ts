/**
 * Where installs live, and how one appears there.
 *
 * Laws: an install is complete or absent (made beside, then renamed), and the first that is complete stays; a lock
 * appears with its owner's name in it, so that others wait; a lock whose owner is gone is taken over. Should two take
 * one over in the same instant, both fill a folder of their own and the first to finish wins.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { attributeError, throwIfAborted } from "@gimbal-rl/core";

const execute = promisify(execFile);

/** The cache folder: `GIMBAL_CACHE_DIR`, else `~/.cache/gimbal`. */
export function defaultCacheDir(env: NodeJS.ProcessEnv = process.env): string {
  return env.GIMBAL_CACHE_DIR || join(homedir(), ".cache", "gimbal");
}

/** A lock without a living owner on this machine, or older than this, is stale. */
const staleAfterMs = 900_000;

/**
 * Makes `target` by filling a temporary folder and renaming it, unless it is there already.
 *
 * @param fill - Fills the folder it is given; may throw.
 * @throws {GimbalError} `harness-missing` when the cache cannot be written; `aborted`; whatever `fill` throws.
 */
export async function installAtomically(
  target: string,
  signal: AbortSignal,
  fill: (folder: string) => Promise<void>,
): Promise<void> {
  const lock = `${target}.lock`;
  const owner = `${process.pid} ${randomUUID()}`;
  try {
    await mkdir(dirname(target), { recursive: true });
    await takeLock(lock, owner, signal);
  } catch (error) {
    throw attributeError(error, "harness-missing", "harness", `Cannot write to ${dirname(target)}`);
  }
  const temporary = `${target}.${randomUUID().slice(0, 8)}.tmp`;
  try {
    if (existsSync(target)) return;
    await mkdir(temporary);
    await fill(temporary);
    await makeReadable(temporary);
    await rename(temporary, target).catch((error: unknown) => {
      if (!isTaken(error)) throw error;
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
    await removeLock(lock, async (folder) => (await readOwner(folder)) === owner);
  }
}

/** Whether a folder could not be renamed because its new place holds files already. */
function isTaken(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "EEXIST" || code === "ENOTEMPTY";
}

/** An agent may run as another user than the one who installs. */
export async function makeReadable(folder: string): Promise<void> {
  if (process.platform !== "win32") await execute("chmod", ["-R", "a+rX", "--", folder]);
}

async function takeLock(lock: string, owner: string, signal: AbortSignal): Promise<void> {
  const own = `${lock}.${randomUUID().slice(0, 8)}.tmp`;
  await mkdir(own);
  try {
    await writeFile(join(own, "pid"), owner);
    for (;;) {
      throwIfAborted(signal);
      try {
        await rename(own, lock);
        return;
      } catch (error) {
        if (!isTaken(error)) throw error;
      }
      if (await isStale(lock)) await removeLock(lock, isStale);
      else await sleep(100, undefined, { signal });
    }
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}

/**
 * Moved away first, because removing takes several steps in which the next owner could come: what is removed is what
 * was looked at, never another's lock.
 */
async function removeLock(
  lock: string,
  isRight: (folder: string) => Promise<boolean>,
): Promise<void> {
  const moved = `${lock}.${randomUUID().slice(0, 8)}.tmp`;
  // Where the move fails another one was faster.
  if (!(await isRight(lock)) || !(await rename(lock, moved).then(isDone, () => false))) return;
  // It changed hands between the look and the move: its owner gets it back.
  if (!(await isRight(moved)) && (await rename(moved, lock).then(isDone, () => false))) return;
  await rm(moved, { recursive: true, force: true });
}

const isDone = (): boolean => true;

async function isStale(lock: string): Promise<boolean> {
  const status = await stat(lock).catch(() => null);
  if (status === null) return false;
  const ageMs = Date.now() - status.mtimeMs;
  const pid = Number.parseInt(await readOwner(lock), 10);
  // An older version wrote its pid after making the folder.
  if (Number.isNaN(pid)) return ageMs > 5_000;
  return ageMs > staleAfterMs || !isAlive(pid);
}

function readOwner(lock: string): Promise<string> {
  return readFile(join(lock, "pid"), "utf8").catch(() => "");
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
