/**
 * Content-addressed blobs as files: `blobs/<first two hex digits>/<sha256>.z`, zlib inside.
 *
 * Law: a blob file is complete or absent (temporary file, then rename), its name is the sha256 of its *uncompressed*
 * content, and every read checks that. Writing the same bytes twice writes once.
 */
import { createHash, randomBytes } from "node:crypto";
import { access, mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { deflate, inflate } from "node:zlib";
import { asId, type BlobId, GimbalError } from "@gimbal-rl/core";
import { errorCodeOf } from "./store-error.js";

const deflateAsync = promisify(deflate);
const inflateAsync = promisify(inflate);
const addressPattern = /^sha256-[0-9a-f]{64}$/;

/** The address of bytes: `sha256-<hex>`. */
export function blobIdOf(bytes: Uint8Array): BlobId {
  return asId<BlobId>(`sha256-${createHash("sha256").update(bytes).digest("hex")}`);
}

function pathOf(dir: string, id: BlobId): string {
  if (!addressPattern.test(id)) {
    throw new GimbalError("not-found", `"${id}" is not a blob address; expected sha256-<64 hex>.`);
  }
  const hex = id.slice("sha256-".length);
  return join(dir, hex.slice(0, 2), `${hex}.z`);
}

/** Stores bytes; resolves when the file stands under its final name. `sync` also survives a power cut. */
export async function writeBlobFile(
  dir: string,
  bytes: Uint8Array,
  { sync }: { readonly sync: boolean },
): Promise<BlobId> {
  const id = blobIdOf(bytes);
  const path = pathOf(dir, id);
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists) return id;
  // Level 1: bodies are JSON with much repetition; higher levels cost CPU that the rollout needs.
  const packed = await deflateAsync(bytes, { level: 1 });
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  await mkdir(dirname(path), { recursive: true });
  try {
    const file = await open(temporary, "wx");
    try {
      await file.writeFile(packed);
      if (sync) await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  return id;
}

/** @throws {GimbalError} `not-found`, `store-corrupt`. */
export async function readBlobFile(dir: string, id: BlobId): Promise<Uint8Array> {
  const path = pathOf(dir, id);
  let packed: Buffer;
  try {
    packed = await readFile(path);
  } catch (error) {
    if (errorCodeOf(error) !== "ENOENT") throw error;
    throw new GimbalError(
      "not-found",
      `Blob ${id} is not in ${dir}. Was the folder copied whole?`,
      {
        cause: error,
      },
    );
  }
  let bytes: Buffer | null = null;
  try {
    bytes = await inflateAsync(packed);
  } catch {
    // Reported below: damaged compression and a wrong hash mean the same to a reader.
  }
  if (bytes === null || blobIdOf(bytes) !== id) {
    throw new GimbalError(
      "store-corrupt",
      `Blob ${id} in ${dir} is damaged: its content does not match its address. Restore it from a copy of the run folder.`,
    );
  }
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
