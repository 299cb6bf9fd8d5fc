/**
 * One writer per run folder.
 *
 * Law: the lock is an operating-system lock that SQLite holds on `writer.lock`, so it ends with its process, however
 * that process ends. Nothing has to be cleaned up after kill -9 and a reused process id cannot fool it. `writer.pid`
 * only names the holder for the error message.
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GimbalError } from "@gimbal-rl/core";
import Database from "libsql";
import { errorCodeOf, toStoreError } from "./store-error.js";

/** A held lock. */
export interface WriterLock {
  release(): void;
}

function holderOf(dir: string): string {
  try {
    return `process ${readFileSync(join(dir, "writer.pid"), "utf8").trim()}`;
  } catch {
    return "another process";
  }
}

/**
 * Takes the writer lock of a run folder, or throws at once when it is held.
 * @throws {GimbalError} `store-unwritable`.
 */
export function acquireWriterLock(dir: string): WriterLock {
  let database: Database.Database | null = null;
  try {
    database = new Database(join(dir, "writer.lock"), { timeout: 0 });
    database.pragma("journal_mode = MEMORY");
    database.exec("BEGIN EXCLUSIVE");
    writeFileSync(join(dir, "writer.pid"), `${process.pid}\n`);
  } catch (error) {
    database?.close();
    if (!errorCodeOf(error).startsWith("SQLITE_BUSY")) throw toStoreError(error, dir);
    throw new GimbalError(
      "store-unwritable",
      `The run folder ${dir} is being written by ${holderOf(dir)}. Wait for it to finish or stop it, or open the run read-only.`,
      { cause: error, details: { dir } },
    );
  }
  const held = database;
  return {
    release: () => {
      rmSync(join(dir, "writer.pid"), { force: true });
      held.exec("ROLLBACK");
      held.close();
    },
  };
}
