/**
 * Opens `gimbal.db`: SQLite in WAL mode, checked before use.
 *
 * WAL with `synchronous = NORMAL`: a committed transaction is in the operating system when the call returns, so killing
 * the process loses nothing. `FULL` adds an fsync per commit, for power cuts.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { GimbalError } from "@gimbal-rl/core";
import Database from "libsql";

/** Version of the tables below; written to `user_version`. */
const schemaVersion = 1;
/** "GMBL" in ASCII; tells this file from any other SQLite file. */
const applicationId = 0x474d424c;
/** Above this a full check at open costs seconds; damage is then met when it is read. */
const checkUpToBytes = 256 * 1024 * 1024;

const schema = `
  BEGIN IMMEDIATE;
  CREATE TABLE IF NOT EXISTS events (
    sequence INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    data ANY NOT NULL,
    UNIQUE (kind, key)
  ) STRICT;
  CREATE INDEX IF NOT EXISTS events_by_kind ON events (kind, sequence);
  PRAGMA application_id = ${applicationId};
  PRAGMA user_version = ${schemaVersion};
  COMMIT;
`;

function pragmaNumber(database: Database.Database, name: string): number {
  const rows: unknown = database.pragma(name);
  const first: unknown = Array.isArray(rows) ? rows[0] : undefined;
  if (typeof first === "object" && first !== null) return Number(Object.values(first)[0] ?? 0);
  return 0;
}

function corrupt(dir: string, found: string): GimbalError {
  return new GimbalError(
    "store-corrupt",
    `The run database in ${dir} is damaged (${found}). Restore the folder from a copy, or start a new run in an empty folder.`,
    { details: { dir, found } },
  );
}

function assertIntact(database: Database.Database, dir: string, sizeBytes: number): void {
  const id = pragmaNumber(database, "application_id");
  const version = pragmaNumber(database, "user_version");
  if (id !== applicationId) {
    throw corrupt(dir, `gimbal.db is a SQLite file of another program, application id ${id}`);
  }
  if (version !== schemaVersion) {
    throw new GimbalError(
      "store-corrupt",
      `The run database in ${dir} has layout ${version}; this version of Gimbal reads layout ${schemaVersion}. Use the version that wrote it.`,
    );
  }
  if (sizeBytes > checkUpToBytes) return;
  const rows: unknown = database.pragma("quick_check(1)");
  const first: unknown = Array.isArray(rows) ? rows[0] : undefined;
  const found = typeof first === "object" && first !== null ? Object.values(first)[0] : "no answer";
  if (found !== "ok")
    throw corrupt(
      dir,
      String(found)
        .replaceAll(/[\s*]+/g, " ")
        .trim(),
    );
}

/** Opens for writing, making the tables when the file is new. */
export function openWritable(dir: string, synchronous: "NORMAL" | "FULL"): Database.Database {
  const path = join(dir, "gimbal.db");
  const sizeBytes = existsSync(path) ? statSync(path).size : 0;
  const isNew = sizeBytes === 0 && !hasContent(`${path}-wal`);
  const blobsDir = join(dir, "blobs");
  if (isNew && existsSync(blobsDir) && readdirSync(blobsDir).length > 0) {
    throw corrupt(dir, "gimbal.db is missing or empty although blobs/ has content");
  }
  const database = new Database(path, { timeout: 5000 });
  try {
    database.pragma("journal_mode = WAL");
    database.pragma(`synchronous = ${synchronous}`);
    if (isNew || isUntouched(database)) database.exec(schema);
    assertIntact(database, dir, sizeBytes);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** A process killed before its first commit leaves a file without tables and without our mark. */
function isUntouched(database: Database.Database): boolean {
  const row: unknown = database.prepare("SELECT count(*) AS tables FROM sqlite_master").get();
  const tables = typeof row === "object" && row !== null && "tables" in row ? row.tables : 1;
  return tables === 0 && pragmaNumber(database, "application_id") === 0;
}

function hasContent(path: string): boolean {
  return existsSync(path) && statSync(path).size > 0;
}

/** Opens for reading only; works beside a writer, and in a folder that cannot be written. */
export function openReadOnly(dir: string): Database.Database {
  const path = join(dir, "gimbal.db");
  if (!existsSync(path)) {
    throw new GimbalError(
      "not-found",
      `There is no run database in ${dir}: expected gimbal.db there. Check the path of the run folder.`,
      { details: { dir } },
    );
  }
  const url = pathToFileURL(path).href;
  const sizeBytes = statSync(path).size;
  const open = (mode: string): Database.Database => {
    const database = new Database(`${url}?${mode}`, { timeout: 5000 });
    try {
      assertIntact(database, dir, sizeBytes);
      return database;
    } catch (error) {
      database.close();
      throw error;
    }
  };
  try {
    return open("mode=ro");
  } catch (error) {
    // In a read-only folder SQLite cannot make the WAL index. With no WAL content the file alone is the truth.
    if (GimbalError.is(error) || hasContent(`${path}-wal`)) throw error;
    return open("immutable=1");
  }
}
