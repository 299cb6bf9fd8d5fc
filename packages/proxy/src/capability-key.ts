/**
 * Session keys: unguessable, and the only thing that selects a session.
 *
 * Law: headers such as `x-session-id`, body fields and model names never select one.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

const prefix = "sk-gimbal-";

/** A new key: 256 random bits. */
export function createCapabilityKey(): string {
  return prefix + randomBytes(32).toString("base64url");
}

/** What is kept instead of a key: looking up a digest leaks nothing about near misses. */
export function keyDigest(key: string): string {
  return createHash("sha256").update(key).digest("base64");
}

/** Compares two secrets in a time that does not depend on where they differ. */
function isSameSecret(a: string, b: string): boolean {
  return timingSafeEqual(
    createHash("sha256").update(a).digest(),
    createHash("sha256").update(b).digest(),
  );
}

/** A request's path without key prefix and query, and the key it carries. */
export interface KeyedPath {
  readonly path: string;
  /** Null when the request carries none. */
  readonly key: string | null;
}

function headerValue(value: string | readonly string[] | undefined): string {
  return typeof value === "string" ? value.trim() : (value?.[0]?.trim() ?? "");
}

/** The token of an `Authorization: Bearer ...` header, or an empty string. */
function bearerToken(request: IncomingMessage): string {
  return /^Bearer\s+(.+)$/i.exec(headerValue(request.headers.authorization))?.[1] ?? "";
}

/** Whether a request carries this secret as its Bearer token. An empty secret opens nothing. */
export function carriesSecret(request: IncomingMessage, secret: string): boolean {
  const token = bearerToken(request);
  return token !== "" && isSameSecret(token, secret);
}

/** Finds the key: path prefix `/s/<key>`, Bearer, `x-api-key`, `x-goog-api-key`, `?key=`, in this order. */
export function readKeyedPath(request: IncomingMessage): KeyedPath {
  const url = request.url ?? "/";
  const mark = url.indexOf("?");
  const path = mark < 0 ? url : url.slice(0, mark);
  const inPath = /^\/s\/([^/]+)(\/.*)?$/.exec(path);
  if (inPath !== null) return { path: inPath[2] ?? "/", key: inPath[1] ?? null };
  const candidates = [
    bearerToken(request),
    headerValue(request.headers["x-api-key"]),
    headerValue(request.headers["x-goog-api-key"]),
    mark < 0 ? "" : (new URLSearchParams(url.slice(mark + 1)).get("key") ?? ""),
  ];
  // A harness may send a placeholder in one place and the key in another.
  const key = candidates.find((value) => value.startsWith(prefix));
  return { path, key: key ?? candidates.find((value) => value !== "") ?? null };
}
