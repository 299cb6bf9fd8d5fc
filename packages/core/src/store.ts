/**
 * The Store port: an append-only event log with a cursor, and content-addressed blobs.
 */
import type { BlobId } from "./ids.js";

/** One event. `kind` names the noun and action, e.g. `attempt-end`; `key` makes appending idempotent. */
export interface StoredEvent {
  /** Position in the log, from 1, without gaps. */
  readonly sequence: number;
  readonly kind: string;
  /** Unique within its kind: appending the same kind and key again is a no-op. */
  readonly key: string;
  readonly data: unknown;
  /** Unix milliseconds. */
  readonly atMs: number;
}

/** Durable storage of one run. Every method resolves only when the data is safe from a kill -9. */
export interface Store {
  /** Appends; returns false when the kind and key were there already (nothing is written).
   * @throws {GimbalError} `store-unwritable`, `store-corrupt`. */
  append(kind: string, key: string, data: unknown): Promise<boolean>;
  /** Appends several in one transaction: all or none. */
  appendAll(
    events: readonly { readonly kind: string; readonly key: string; readonly data: unknown }[],
  ): Promise<void>;
  get(kind: string, key: string): Promise<StoredEvent | null>;
  /** Events in order, after the cursor. */
  read(options?: {
    readonly kind?: string;
    readonly after?: number;
    readonly limit?: number;
  }): AsyncIterable<StoredEvent>;
  putBlob(bytes: Uint8Array): Promise<BlobId>;
  /** @throws {GimbalError} `not-found`, `store-corrupt` when the content does not match its address. */
  getBlob(id: BlobId): Promise<Uint8Array>;
  close(): Promise<void>;
}
