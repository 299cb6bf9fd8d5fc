/**
 * Files and folders that survive a kill at any moment: written whole, flushed, then renamed into place.
 */
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

/** True for "there is no such file or folder". */
export function isMissing(error: unknown): boolean {
  return (error as { readonly code?: unknown } | null)?.code === "ENOENT";
}

/** Flushes a folder's entries. Some systems cannot; there a rename is as durable as they make it. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, "r").catch(() => null);
  if (handle === null) return;
  try {
    await handle.sync().catch(() => undefined);
  } finally {
    await handle.close();
  }
}

async function writeSynced(
  path: string,
  data: string | Uint8Array,
  flags: "a" | "w",
): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.writeFile(data);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes and flushes a file inside a folder that is not in place yet. */
export async function writeFileSynced(path: string, data: string | Uint8Array): Promise<void> {
  await writeSynced(path, data, "w");
}

/** Appends and flushes. */
export async function appendFileSynced(path: string, data: string): Promise<void> {
  await writeSynced(path, data, "a");
}

/** Replaces a text file of a run folder: complete or untouched, whatever is killed when. */
export async function replaceFile(path: string, data: string): Promise<void> {
  const temporary = `${path}.tmp`;
  await writeSynced(temporary, data, "w");
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** Fills a folder under a temporary name and renames it into place; a folder already there is replaced. */
export async function createFolder(
  parent: string,
  name: string,
  fill: (temporary: string) => Promise<void>,
): Promise<string> {
  const temporary = join(parent, `.tmp-${name}-${process.pid}`);
  const final = join(parent, name);
  await rm(temporary, { recursive: true, force: true });
  await mkdir(temporary, { recursive: true });
  await fill(temporary);
  await syncFolder(temporary);
  await removeFolder(final);
  await rename(temporary, final);
  await syncFolder(parent);
  return final;
}

/** Removes a folder so that no half of it is ever seen under its name. */
export async function removeFolder(path: string): Promise<void> {
  const trash = join(
    dirname(path),
    `.tmp-trash-${process.pid}-${path.slice(dirname(path).length + 1)}`,
  );
  try {
    await rename(path, trash);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  await rm(trash, { recursive: true, force: true });
}
