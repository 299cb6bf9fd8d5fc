/**
 * Event data on disk: JSON text, deflated when that pays.
 *
 * Law: decode(encode(x)) equals x for JSON data, key order kept; numbers survive exactly (an f32 printed as a double is
 * read back as the same double).
 */
import { deflateSync, inflateSync } from "node:zlib";
import { GimbalError } from "@gimbal-rl/core";

/** Below this many characters compression gains nothing. */
const compressFrom = 1024;

/** Text for short data, deflated bytes for long. */
export function encodeEventData(data: unknown): string | Buffer {
  // `undefined` has no JSON form; null stands for "no data".
  const text = JSON.stringify(data) ?? "null";
  return text.length < compressFrom ? text : deflateSync(text, { level: 1 });
}

/** @throws {GimbalError} `store-corrupt`. */
export function decodeEventData(stored: unknown): unknown {
  try {
    if (typeof stored === "string") return JSON.parse(stored);
    // libsql returns blobs as ArrayBuffer.
    if (stored instanceof ArrayBuffer || stored instanceof Uint8Array) {
      return JSON.parse(inflateSync(stored).toString("utf8"));
    }
  } catch (error) {
    throw new GimbalError(
      "store-corrupt",
      "An event of the run database is not readable. Restore the run folder from a copy.",
      { cause: error },
    );
  }
  throw new GimbalError(
    "store-corrupt",
    `An event of the run database holds ${typeof stored} instead of text or bytes. Restore the run folder from a copy.`,
  );
}
