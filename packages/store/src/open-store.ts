/**
 * The Store port on a run folder: `gimbal.db` (SQLite, WAL) and `blobs/`.
 *
 * Law: when a method has resolved, kill -9 of this process loses nothing of it; appending the same kind and key twice
 * is one event; sequence numbers have no gaps.
 */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  type Clock,
  GimbalError,
  type Store,
  type StoredEvent,
  systemClock,
} from "@gimbal-rl/core";
import type Database from "libsql";
import { readBlobFile, writeBlobFile } from "./blob-files.js";
import { decodeEventData, encodeEventData } from "./event-codec.js";
import { openReadOnly, openWritable } from "./sqlite-database.js";
import { toStoreError } from "./store-error.js";
import { acquireWriterLock, type WriterLock } from "./writer-lock.js";

/** How a store is opened. */
export interface OpenStoreOptions {
  /** Reads only: takes no lock, works beside a running writer. Default false. */
  readonly readOnly?: boolean;
  /** What a finished write survives: the end of the process (default), or a power cut too (an fsync per write). */
  readonly survives?: "process-kill" | "power-cut";
  /** Source of `atMs`. */
  readonly clock?: Clock;
}

/** Rows fetched at a time by `read`; bounds memory, not the result. */
const pageSize = 64;

interface EventRow {
  readonly sequence: number;
  readonly kind: string;
  readonly key: string;
  readonly at_ms: number;
  readonly data: unknown;
}

function rowToEvent(row: EventRow): StoredEvent {
  return {
    sequence: row.sequence,
    kind: row.kind,
    key: row.key,
    data: decodeEventData(row.data),
    atMs: row.at_ms,
  };
}

/**
 * Opens the store of a run folder, making it when it is new.
 *
 * @param dir - the run folder.
 * @throws {GimbalError} `store-corrupt`, `store-unwritable` (also when another process writes it), `not-found` (read-only).
 * @example
 * const store = await openStore("runs/demo");
 * await store.append("attempt-end", "a1", { score: 1 });
 * await store.close();
 */
export async function openStore(dir: string, options: OpenStoreOptions = {}): Promise<Store> {
  const root = resolve(dir);
  const readOnly = options.readOnly ?? false;
  let lock: WriterLock | null = null;
  try {
    if (readOnly) return createStore(root, openReadOnly(root), null, options);
    mkdirSync(root, { recursive: true });
    lock = acquireWriterLock(root);
    mkdirSync(join(root, "blobs"), { recursive: true });
    const synchronous = options.survives === "power-cut" ? "FULL" : "NORMAL";
    return createStore(root, openWritable(root, synchronous), lock, options);
  } catch (error) {
    lock?.release();
    throw toStoreError(error, root);
  }
}

function createStore(
  root: string,
  database: Database.Database,
  lock: WriterLock | null,
  { clock = systemClock, survives = "process-kill" }: OpenStoreOptions,
): Store {
  const blobsDir = join(root, "blobs");
  let open = true;

  const select = "SELECT sequence, kind, key, at_ms, data FROM events";
  const getStatement = database.prepare(`${select} WHERE kind = ? AND key = ?`);
  const pageStatement = database.prepare(`${select} WHERE sequence > ? ORDER BY sequence LIMIT ?`);
  const kindPageStatement = database.prepare(
    `${select} WHERE kind = ? AND sequence > ? ORDER BY sequence LIMIT ?`,
  );
  const insertStatement =
    lock === null
      ? null
      : database.prepare(
          "INSERT INTO events (kind, key, at_ms, data) VALUES (?, ?, ?, ?) ON CONFLICT (kind, key) DO NOTHING",
        );

  const guard = async <Result>(work: () => Result | Promise<Result>): Promise<Result> => {
    if (!open) {
      throw new GimbalError("store-unwritable", `The store in ${root} is closed. Open it again.`);
    }
    try {
      return await work();
    } catch (error) {
      throw toStoreError(error, root);
    }
  };
  const insert = (kind: string, key: string, data: string | Buffer): boolean => {
    if (insertStatement === null) {
      throw new GimbalError(
        "store-unwritable",
        `The store in ${root} was opened read-only. Open it without readOnly to write.`,
      );
    }
    return insertStatement.run([kind, key, clock.nowMs(), data]).changes > 0;
  };

  return {
    append: (kind, key, data) => guard(() => insert(kind, key, encodeEventData(data))),
    appendAll: (events) =>
      guard(() => {
        const encoded = events.map((event) => ({ ...event, data: encodeEventData(event.data) }));
        database.exec("BEGIN IMMEDIATE");
        try {
          for (const event of encoded) insert(event.kind, event.key, event.data);
          database.exec("COMMIT");
        } catch (error) {
          // SQLite ends the transaction by itself after some errors (full disk); then there is nothing to undo.
          if (database.inTransaction) database.exec("ROLLBACK");
          throw error;
        }
      }),
    get: (kind, key) =>
      guard(() => {
        const row = getStatement.get([kind, key]) as EventRow | undefined;
        return row === undefined ? null : rowToEvent(row);
      }),
    read: async function* ({ kind, after = 0, limit = Number.POSITIVE_INFINITY } = {}) {
      let cursor = after;
      let left = limit;
      while (left > 0) {
        const count = Math.min(pageSize, left);
        const rows = (await guard(() =>
          kind === undefined
            ? pageStatement.all([cursor, count])
            : kindPageStatement.all([kind, cursor, count]),
        )) as EventRow[];
        for (const row of rows) {
          const event = await guard(() => rowToEvent(row));
          cursor = event.sequence;
          left -= 1;
          yield event;
        }
        if (rows.length < count) return;
      }
    },
    putBlob: (bytes) =>
      guard(() => {
        if (lock === null) {
          throw new GimbalError("store-unwritable", `The store in ${root} was opened read-only.`);
        }
        return writeBlobFile(blobsDir, bytes, { sync: survives === "power-cut" });
      }),
    getBlob: (id) => guard(() => readBlobFile(blobsDir, id)),
    close: async () => {
      if (!open) return;
      open = false;
      try {
        // Folds the WAL into the database file, so that the folder can be copied or opened read-only.
        if (lock !== null) database.pragma("wal_checkpoint(TRUNCATE)");
      } finally {
        database.close();
        lock?.release();
      }
    },
  };
}
