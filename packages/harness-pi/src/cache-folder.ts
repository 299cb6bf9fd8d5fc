/**
 * Where installs live, and how one appears there.
 *
 * Laws: an install is complete or absent (made beside, then renamed); two processes never install the same thing at
 * once; a lock whose owner is gone is taken over.
 */
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { attributeError } from "@gimbal-rl/core";

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
 * @throws {GimbalError} `harness-missing` when the cache cannot be written; whatever `fill` throws.
 */
export async function installAtomically(
  target: string,
  signal: AbortSignal,
  fill: (folder: string) => Promise<void>,
): Promise<void> {
  const lock = `${target}.lock`;
  try {
    await mkdir(dirname(target), { recursive: true });
    await takeLock(lock, signal);
  } catch (error) {
    throw attributeError(error, "harness-missing", "harness", `Cannot write to ${dirname(target)}`);
  }
  const temporary = `${target}.${randomUUID().slice(0, 8)}.tmp`;
  try {
    if (existsSync(target)) return;
    await mkdir(temporary);
    await fill(temporary);
    await makeReadable(temporary);
    await rename(temporary, target);
  } finally {
    await rm(temporary, { recursive: true, force: true });
    await rm(lock, { recursive: true, force: true });
  }
}

/** An agent may run as another user than the one who installs. */
export async function makeReadable(folder: string): Promise<void> {
  if (process.platform !== "win32") await execute("chmod", ["-R", "a+rX", "--", folder]);
}

async function takeLock(lock: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    try {
      await mkdir(lock);
      await writeFile(join(lock, "pid"), String(process.pid));
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (await isStale(lock)) await rm(lock, { recursive: true, force: true });
    else await sleep(100, undefined, { signal });
  }
}

async function isStale(lock: string): Promise<boolean> {
  const status = await stat(lock).catch(() => null);
  if (status === null) return false;
  const ageMs = Date.now() - status.mtimeMs;
  const pid = Number(await readFile(join(lock, "pid"), "utf8").catch(() => ""));
  // The owner writes its pid right after making the folder.
  if (pid === 0) return ageMs > 5_000;
  return ageMs > staleAfterMs || !isAlive(pid);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
