/**
 * What changed in a workspace, read by an outsider who trusts nothing in it.
 *
 * Laws: no link is followed, no special file is opened, nothing is read beyond the limits, and the walk ends after a
 * bounded number of entries whatever the agent created.
 */

import { constants, type Dir } from "node:fs";
import { chmod, lstat, open, opendir } from "node:fs/promises";
import { join } from "node:path";
import type { WorkspaceDiff } from "@gimbal-rl/core";

/** Limits of one diff. */
export interface DiffLimits {
  /** Files and folders looked at. Default 20,000. */
  readonly maxEntries: number;
  /** Size of one carried file. Default 1 MiB. */
  readonly maxFileBytes: number;
  /** Size of all carried files. Default 16 MiB. */
  readonly maxTotalBytes: number;
  /** Refusals that are listed; further ones are counted in one entry. Default 200. */
  readonly maxRefused: number;
}

/** The defaults. */
export const defaultDiffLimits: DiffLimits = {
  maxEntries: 20_000,
  maxFileBytes: 1_048_576,
  maxTotalBytes: 16_777_216,
  maxRefused: 200,
};

interface Walk {
  readonly root: string;
  readonly initial: ReadonlyMap<string, string>;
  readonly limits: DiffLimits;
  readonly changed: Record<string, string | null>;
  readonly refused: { path: string; reason: string }[];
  refusedMore: number;
  readonly seen: Set<string>;
  entries: number;
  totalBytes: number;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Compares a workspace folder with the files it was created with.
 *
 * @param root - Host path of the workspace.
 * @param files - Its initial files.
 * @returns Changed texts by path, `null` for files that are gone; and what could not be carried, with the reason.
 */
export async function readWorkspaceDiff(
  root: string,
  files: Readonly<Record<string, string>>,
  limits: DiffLimits = defaultDiffLimits,
): Promise<WorkspaceDiff> {
  const walk: Walk = {
    root,
    initial: new Map(Object.entries(files)),
    limits,
    // Without a prototype: an agent may call a file "__proto__".
    changed: Object.create(null) as Record<string, string | null>,
    refused: [],
    refusedMore: 0,
    seen: new Set(),
    entries: 0,
    totalBytes: 0,
  };
  const complete = await walkFolders(walk);
  for (const path of walk.initial.keys()) {
    if (walk.seen.has(path)) continue;
    // After an incomplete walk an unseen file is looked at by itself: absence must be known, not assumed.
    if (!complete && (await isPlainFileBelow(root, path))) await readChanged(walk, path);
    else walk.changed[path] = null;
  }
  if (walk.refusedMore > 0) {
    walk.refused.push({ path: "", reason: `${walk.refusedMore} more refused` });
  }
  return { changed: walk.changed, refused: walk.refused };
}

/** Breadth first, so that a bomb in one folder does not hide the ordinary files beside it. */
async function walkFolders(walk: Walk): Promise<boolean> {
  const pending = [""];
  for (let index = 0; index < pending.length; index += 1) {
    const folder = pending[index] ?? "";
    const names = await readNames(walk, folder);
    if (names === "too-many") return false;
    for (const name of names) {
      const path = folder === "" ? name : `${folder}/${name}`;
      const status = await lstat(join(walk.root, path)).catch(() => null);
      if (status === null) continue;
      if (status.isDirectory()) pending.push(path);
      else if (status.isFile()) await readChanged(walk, path);
      else refuse(walk, path, describeSpecial(status));
    }
  }
  return true;
}

async function readNames(walk: Walk, folder: string): Promise<string[] | "too-many"> {
  const hostPath = join(walk.root, folder);
  const directory = await openFolder(hostPath);
  if (directory === null) {
    refuse(walk, folder, "unreadable folder");
    return [];
  }
  const names: string[] = [];
  try {
    for (let entry = await directory.read(); entry !== null; entry = await directory.read()) {
      walk.entries += 1;
      if (walk.entries > walk.limits.maxEntries) {
        refuse(walk, folder, `more than ${walk.limits.maxEntries} files and folders`);
        return "too-many";
      }
      const name = decodeName(entry.name as unknown as Buffer);
      if (name === null) refuse(walk, folder, "a file name that is not UTF-8");
      else names.push(name);
    }
  } finally {
    await directory.close();
  }
  return names.sort();
}

async function openFolder(path: string): Promise<Dir | null> {
  // Names come as bytes: a name that is not UTF-8 must not turn into another, valid one.
  const options = { encoding: "buffer" as BufferEncoding, bufferSize: 256 };
  try {
    return await opendir(path, options);
  } catch {
    await chmod(path, 0o700).catch(() => undefined);
    return await opendir(path, options).catch(() => null);
  }
}

function decodeName(name: Buffer | string): string | null {
  if (typeof name === "string") return name.includes("\uFFFD") ? null : name;
  try {
    return decoder.decode(name);
  } catch {
    return null;
  }
}

async function readChanged(walk: Walk, path: string): Promise<void> {
  walk.seen.add(path);
  const before = walk.initial.get(path);
  const bytes = await readPlainFile(join(walk.root, path), walk.limits.maxFileBytes);
  // What cannot be carried is not what was there: grading must not find the old text. A file that was beyond the limit
  // from the start cannot be compared and stays.
  const isComparable =
    before !== undefined && Buffer.byteLength(before) <= walk.limits.maxFileBytes;
  const spoil = (reason: string): void => {
    if (isComparable) walk.changed[path] = null;
    refuse(walk, path, reason);
  };
  if (typeof bytes === "string") return spoil(bytes);
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return spoil("not UTF-8");
  }
  if (text === before) return;
  if (walk.totalBytes + bytes.length > walk.limits.maxTotalBytes) {
    return spoil(`beyond ${walk.limits.maxTotalBytes} bytes in all`);
  }
  walk.totalBytes += bytes.length;
  walk.changed[path] = text;
}

/** The bytes, or the reason why not. The descriptor is checked, so a swap after `lstat` gains nothing. */
async function readPlainFile(hostPath: string, maxBytes: number): Promise<Buffer | string> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  let file = await open(hostPath, flags).catch(() => null);
  if (file === null) {
    const status = await lstat(hostPath).catch(() => null);
    if (!status?.isFile()) return "not a plain file";
    await chmod(hostPath, 0o600).catch(() => undefined);
    file = await open(hostPath, flags).catch(() => null);
    if (file === null) return "unreadable";
  }
  try {
    const status = await file.stat();
    if (!status.isFile()) return "not a plain file";
    if (status.size > maxBytes) return `larger than ${maxBytes} bytes`;
    const buffer = Buffer.alloc(status.size);
    const { bytesRead } = await file.read(buffer, 0, status.size, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** True when every folder on the way is a real folder and the end is a plain file. */
async function isPlainFileBelow(root: string, path: string): Promise<boolean> {
  const parts = path.split("/");
  for (let length = 1; length < parts.length; length += 1) {
    const status = await lstat(join(root, ...parts.slice(0, length))).catch(() => null);
    if (!status?.isDirectory()) return false;
  }
  return (await lstat(join(root, path)).catch(() => null))?.isFile() ?? false;
}

function refuse(walk: Walk, path: string, reason: string): void {
  if (walk.refused.length < walk.limits.maxRefused) walk.refused.push({ path, reason });
  else walk.refusedMore += 1;
}

function describeSpecial(status: Awaited<ReturnType<typeof lstat>>): string {
  if (status.isSymbolicLink()) return "symbolic link";
  if (status.isFIFO()) return "named pipe";
  if (status.isSocket()) return "socket";
  return "device";
}
