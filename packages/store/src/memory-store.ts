/**
 * The Store port in memory, for tests and for runs that need no folder. Same laws as on disk, except durability.
 */
import {
  type BlobId,
  type Clock,
  GimbalError,
  type Store,
  type StoredEvent,
  systemClock,
} from "@gimbal-rl/core";
import { blobIdOf } from "./blob-files.js";

/**
 * Makes an empty store that lives as long as the object.
 * @example
 * const store = createMemoryStore();
 * await store.append("note", "1", { text: "hello" }); // true
 */
export function createMemoryStore(options: { readonly clock?: Clock } = {}): Store {
  const clock = options.clock ?? systemClock;
  const events: StoredEvent[] = [];
  const positions = new Map<string, number>();
  const blobs = new Map<BlobId, Uint8Array>();
  let closed = false;

  const assertOpen = (): void => {
    if (closed) throw new GimbalError("store-unwritable", "The store is closed. Open it again.");
  };
  const addressOf = (kind: string, key: string): string => JSON.stringify([kind, key]);
  const appendOne = (kind: string, key: string, data: unknown): boolean => {
    const address = addressOf(kind, key);
    if (positions.has(address)) return false;
    // A copy through JSON, so that later changes by the caller do not show, as on disk.
    const copy: unknown = JSON.parse(JSON.stringify(data) ?? "null");
    positions.set(address, events.length);
    events.push({ sequence: events.length + 1, kind, key, data: copy, atMs: clock.nowMs() });
    return true;
  };

  return {
    append: async (kind, key, data) => {
      assertOpen();
      return appendOne(kind, key, data);
    },
    appendAll: async (batch) => {
      assertOpen();
      // Serialise all first: one that fails must leave nothing behind.
      for (const event of batch) JSON.stringify(event.data);
      for (const event of batch) appendOne(event.kind, event.key, event.data);
    },
    get: async (kind, key) => {
      assertOpen();
      const position = positions.get(addressOf(kind, key));
      return position === undefined ? null : (events[position] ?? null);
    },
    read: async function* ({ kind, after = 0, limit = Number.POSITIVE_INFINITY } = {}) {
      assertOpen();
      let sent = 0;
      for (let i = Math.max(0, after); i < events.length && sent < limit; i += 1) {
        const event = events[i];
        if (event === undefined || (kind !== undefined && event.kind !== kind)) continue;
        sent += 1;
        yield event;
      }
    },
    putBlob: async (bytes) => {
      assertOpen();
      const id = blobIdOf(bytes);
      if (!blobs.has(id)) blobs.set(id, bytes.slice());
      return id;
    },
    getBlob: async (id) => {
      assertOpen();
      const bytes = blobs.get(id);
      if (bytes === undefined)
        throw new GimbalError("not-found", `Blob ${id} is not in this store.`);
      return bytes.slice();
    },
    close: async () => {
      closed = true;
    },
  };
}
