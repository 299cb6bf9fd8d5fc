/**
 * What one process in a namespace sees, independent of the tool that sets it up.
 */
import { existsSync } from "node:fs";
import { GimbalError, type ReadOnlyMount } from "@gimbal-rl/core";

/** See the header. Host paths exist. */
export interface NamespacePlan {
  readonly homePath: string;
  readonly workspacePath: string;
  /** An empty folder on which a new root can be built. */
  readonly rootPath: string;
  readonly etcMounts: readonly ReadOnlyMount[];
  readonly mounts: readonly ReadOnlyMount[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Size of each of /tmp and /dev/shm. */
  readonly scratchBytes: number;
}

/** Paths that the namespace itself owns. */
const ownedPaths = ["/", "/proc", "/dev", "/tmp", "/etc", "/home", "/home/agent", "/workspace"];

/**
 * Turns paths and mounts into one list, shortest inside path first, so that nested mounts land on top.
 *
 * @throws {GimbalError} `config-invalid` for a path that does not exist, is relative, or would cover what the
 * namespace owns.
 */
export function planMounts(
  paths: readonly string[],
  mounts: readonly ReadOnlyMount[],
): readonly ReadOnlyMount[] {
  const all = [...paths.map((path) => ({ hostPath: path, insidePath: path })), ...mounts];
  const byInside = new Map(all.map((mount) => [mount.insidePath, mount]));
  for (const { hostPath, insidePath } of byInside.values()) {
    const plain = insidePath.startsWith("/") && !insidePath.split("/").includes("..");
    if (!plain || ownedPaths.includes(insidePath.replace(/\/+$/, "") || "/")) {
      throw new GimbalError(
        "config-invalid",
        `${JSON.stringify(insidePath)} cannot be a read-only mount; expected an absolute path other than ${ownedPaths.join(", ")}.`,
        { boundary: "sandbox" },
      );
    }
    if (!existsSync(hostPath)) {
      throw new GimbalError(
        "config-invalid",
        `The read-only path ${hostPath} does not exist; install what should be there, or remove it from the list.`,
        { boundary: "sandbox" },
      );
    }
  }
  return [...byInside.values()].sort((a, b) => a.insidePath.length - b.insidePath.length);
}
