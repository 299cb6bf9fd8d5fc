/**
 * Model folders on disk. The only file here that touches `node:fs`; it is imported on demand, so that the numerical
 * core also runs in a browser.
 *
 * Law: a file that is written appears complete or not at all (temporary file, fsync, rename, fsync of the folder).
 */
import { type FileHandle, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { attributeError } from "@gimbal-rl/core";
import { modelInvalid, parseJsonObject } from "./config.js";
import {
  createTensorSource,
  parseHeaderLength,
  parseSafetensorsHeader,
  type TensorSource,
} from "./safetensors.js";

function isMissing(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return code === "ENOENT" || code === "ENOTDIR" || code === "EISDIR";
}

async function readBytes(
  handle: FileHandle,
  position: number,
  length: number,
  label: string,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await handle.read(bytes, done, length - done, position + done);
    if (bytesRead === 0) throw modelInvalid(label, "the file became shorter while it was read.");
    done += bytesRead;
  }
  return bytes;
}

/** Opens one safetensors file; null when it does not exist. @throws {GimbalError} `model-invalid`. */
export async function openSafetensors(path: string): Promise<TensorSource | null> {
  let opened: FileHandle | null;
  try {
    opened = (await isPlainFile(path)) ? await open(path, "r") : null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw modelInvalid(
      path,
      "the file cannot be opened; check the link or its permissions.",
      error,
    );
  }
  if (opened === null) throw modelInvalid(path, notPlain);
  const handle = opened;
  try {
    const { size } = await handle.stat();
    const prefix = await readBytes(handle, 0, Math.min(8, size), path);
    const length = parseHeaderLength(prefix, size, path);
    const header = parseSafetensorsHeader(
      await readBytes(handle, 8, length, path),
      size - 8 - length,
      path,
    );
    return createTensorSource(
      header,
      path,
      (start, end) => readBytes(handle, 8 + length + start, end - start, path),
      () => handle.close(),
    );
  } catch (error) {
    await handle.close();
    throw attributeError(error, "model-invalid", "compute", path);
  }
}

async function openShards(indexText: string, dir: string, label: string): Promise<TensorSource> {
  const map = parseJsonObject(indexText, label).weight_map;
  if (typeof map !== "object" || map === null) throw modelInvalid(label, "expected a weight_map.");
  const shards = new Map<string, TensorSource>();
  const owner = new Map<string, TensorSource>();
  const close = async (): Promise<void> => {
    for (const shard of shards.values()) await shard.close();
  };
  try {
    for (const [name, file] of Object.entries(map)) {
      if (typeof file !== "string" || /[\\/]/.test(file))
        throw modelInvalid(label, `tensor ${name} names no file of this folder.`);
      const shard = shards.get(file) ?? (await openSafetensors(join(dir, file)));
      if (shard === null)
        throw modelInvalid(label, `shard ${file} is missing; download the whole folder.`);
      shards.set(file, shard);
      if (!shard.shapes.has(name)) throw modelInvalid(label, `${file} holds no tensor ${name}.`);
      owner.set(name, shard);
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    label,
    shapes: new Map([...owner].map(([name, shard]) => [name, shard.shapes.get(name) ?? []])),
    metadata: {},
    async read(name) {
      const shard = owner.get(name);
      if (shard === undefined) throw modelInvalid(label, `no tensor named ${name}.`);
      return shard.read(name);
    },
    close,
  };
}

const notPlain = "this is not a plain file; put the file itself there.";

/** Opening a named pipe would wait for ever, and not even a signal would end the process. */
async function isPlainFile(path: string): Promise<boolean> {
  return (await stat(path)).isFile();
}

/** A text file of a model folder; null when it does not exist. */
async function readFolderText(dir: string, file: string): Promise<string | null> {
  const path = join(dir, file);
  try {
    if (await isPlainFile(path)) return await readFile(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return null;
    throw modelInvalid(path, "the file cannot be read; check the link or its permissions.", error);
  }
  throw modelInvalid(path, notPlain);
}

/** Opens the weights of a Hugging Face folder, single file or sharded. @throws {GimbalError} `model-invalid`. */
export async function openWeights(dir: string): Promise<TensorSource> {
  const single = await openSafetensors(join(dir, "model.safetensors"));
  if (single !== null) return single;
  const index = await readFolderText(dir, "model.safetensors.index.json");
  if (index !== null) return openShards(index, dir, join(dir, "model.safetensors.index.json"));
  throw modelInvalid(
    dir,
    "found no model.safetensors; expected a Hugging Face model folder (config.json and model.safetensors). Check the path.",
  );
}

/** Reads `config.json` of a folder. @throws {GimbalError} `model-invalid` when it is missing. */
export async function readConfigText(dir: string): Promise<string> {
  const text = await readFolderText(dir, "config.json");
  if (text === null) {
    throw modelInvalid(
      dir,
      "found no config.json; expected a Hugging Face model folder (config.json and model.safetensors). Check the path.",
    );
  }
  return text;
}

/**
 * Creates the folder if needed and writes one file atomically from pieces.
 * @throws {GimbalError} `store-unwritable` when the disk is full or the folder cannot be written.
 */
export async function writeFileAtomically(
  dir: string,
  file: string,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const temporary = join(dir, `.${file}.${process.pid}.tmp`);
  try {
    await mkdir(dir, { recursive: true });
    const handle = await open(temporary, "w");
    try {
      for await (const piece of pieces) await handle.writeFile(piece);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, join(dir, file));
    const folder = await open(dir, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw attributeError(
      error,
      "store-unwritable",
      "compute",
      `Cannot write ${join(dir, file)}; free disk space or check permissions`,
    );
  }
}
