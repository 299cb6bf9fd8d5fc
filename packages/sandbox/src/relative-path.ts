/**
 * Relative POSIX paths of a workspace.
 *
 * Law: a path that passes here, joined to a root, stays below the root (as long as no link lies on the way).
 */
import { GimbalError } from "@gimbal-rl/core";

/** Whether a path is relative, POSIX, normalised and stays inside its root. */
export function isSafeRelativePath(path: string): boolean {
  if (path === "" || path.length > 4096 || path.startsWith("/") || path.includes("\0"))
    return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

/**
 * Returns the path unchanged when it is safe.
 *
 * @throws {GimbalError} `invalid-request` when it is absolute, empty or leaves its root.
 */
export function requireSafeRelativePath(path: string): string {
  if (isSafeRelativePath(path)) return path;
  throw new GimbalError(
    "invalid-request",
    `The path ${JSON.stringify(path)} is not a plain relative path; write it like "src/main.js", without "..", "." or a leading slash.`,
    { boundary: "sandbox", details: { path } },
  );
}
