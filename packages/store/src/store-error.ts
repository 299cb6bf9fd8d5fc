/**
 * Turns what SQLite and the file system throw into the two errors a user can act on:
 * `store-corrupt` (the data is damaged) and `store-unwritable` (the folder or disk refuses).
 */
import { GimbalError } from "@gimbal-rl/core";

const corruptCodes = ["SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT"];
const unwritableCodes = [
  "SQLITE_READONLY",
  "SQLITE_FULL",
  "SQLITE_CANTOPEN",
  "SQLITE_IOERR",
  "SQLITE_PERM",
  "EACCES",
  "EDQUOT",
  "EEXIST",
  "EIO",
  "ENOSPC",
  "ENOTDIR",
  "EPERM",
  "EROFS",
];

/** The `code` of a foreign exception, or an empty string. */
export function errorCodeOf(error: unknown): string {
  if (typeof error === "object" && error !== null && "code" in error) return String(error.code);
  return "";
}

/** True when the write found no space left (disk, quota or page limit). */
function isFull(code: string): boolean {
  return code.startsWith("SQLITE_FULL") || code === "ENOSPC" || code === "EDQUOT";
}

/** Gives a foreign exception of the store a code and a next step; a GimbalError passes through. */
export function toStoreError(error: unknown, dir: string): GimbalError {
  if (GimbalError.is(error)) return error;
  const code = errorCodeOf(error);
  const text = error instanceof Error ? error.message : String(error);
  const details = { dir, cause: text, code };
  if (corruptCodes.some((known) => code.startsWith(known))) {
    return new GimbalError(
      "store-corrupt",
      `The run database in ${dir} is damaged (${text}). Restore the folder from a copy, or start a new run in an empty folder.`,
      { cause: error, details },
    );
  }
  if (isFull(code)) {
    return new GimbalError(
      "store-unwritable",
      `The disk that holds ${dir} is full (${text}). Free space there and resume the run.`,
      { cause: error, details },
    );
  }
  if (
    unwritableCodes.some((known) => code.startsWith(known)) ||
    text.startsWith("ConnectionFailed")
  ) {
    return new GimbalError(
      "store-unwritable",
      `The run folder ${dir} cannot be written (${text}). Give write permission to it, or choose another folder.`,
      { cause: error, details },
    );
  }
  return new GimbalError("store-unwritable", `The store in ${dir} failed: ${text}.`, {
    cause: error,
    details,
  });
}
