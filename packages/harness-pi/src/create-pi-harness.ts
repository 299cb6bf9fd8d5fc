/**
 * The Pi coding agent as a {@link Harness}: its published package, unmodified.
 *
 * Law: the version that runs is exactly the version asked for, or nothing runs.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { GimbalError, type Harness, type Sandbox } from "@gimbal-rl/core";
import { defaultCacheDir, installAtomically } from "./cache-folder.js";
import { warmCompileCache } from "./compile-cache.js";
import { launchPi, type PiInstall, type PiLaunchOptions } from "./launch.js";
import { resolveNode } from "./node-runtime.js";
import { npmInstall, readPackageVersion } from "./npm-install.js";
import { readPiOutcome } from "./read-outcome.js";
import { findRelease, type PiRelease, type PiVersion } from "./versions.js";

/** Options of {@link createPiHarness}. */
export interface PiHarnessOptions {
  readonly version: PiVersion;
  /** Default: `GIMBAL_CACHE_DIR`, else `~/.cache/gimbal`. Installs go to `harness/pi-<version>` and `node/` below it. */
  readonly cacheDir?: string;
  /** A Node to run Pi with. Default: the running one when it is new enough, else a pinned one from npm. */
  readonly nodePath?: string;
  /** Pi's own summarising of old turns. Default false: it reserves 16k tokens and starts new roots. */
  readonly compaction?: boolean;
  /** Names of the tools offered. Default: Pi's own (read, bash, edit, write). */
  readonly tools?: readonly string[];
  /** Pi's thinking level. Default `"off"`. */
  readonly thinking?: "off" | "minimal" | "low" | "medium" | "high" | "xhigh";
  /** Options of the Node that runs Pi. Default: none. */
  readonly nodeOptions?: readonly string[];
  /** The sandbox the runs will use: `prepare` compiles Pi once in it and later runs start faster. */
  readonly warmUpIn?: Sandbox;
}

/**
 * Creates the adapter. Nothing is read or installed before `prepare`.
 *
 * @throws {GimbalError} `config-invalid` for an unknown version.
 * @example
 * const harness = createPiHarness({ version: "1.6.0" });
 */
export function createPiHarness(options: PiHarnessOptions): Harness {
  const release = findRelease(options.version);
  const cacheDir = options.cacheDir ?? defaultCacheDir();
  const launchOptions: PiLaunchOptions = {
    compaction: options.compaction ?? false,
    tools: options.tools,
    thinking: options.thinking ?? "off",
    nodeOptions: options.nodeOptions ?? [],
  };
  let prepared: PiInstall | null = null;
  return {
    id: "pi",
    version: release.version,
    prepare: async ({ install, signal }) => {
      const installDir = await resolvePi(release, cacheDir, install, signal);
      const { nodePath } = options;
      const current = { version: process.version, execPath: process.execPath };
      const node = await resolveNode({ release, nodePath, cacheDir, install, signal, current });
      if (!existsSync(node)) throw missingNode(node);
      const plain: PiInstall = { installDir, nodePath: node, compileCacheDir: null };
      const compileCacheDir =
        options.warmUpIn === undefined
          ? null
          : await warmCompileCache({
              release,
              launchOptions,
              install: plain,
              cacheDir,
              sandbox: options.warmUpIn,
              signal,
            });
      prepared = { ...plain, compileCacheDir };
    },
    launch: (spec) => {
      if (prepared === null) {
        throw new GimbalError(
          "harness-missing",
          `Pi ${release.version} was not prepared; await harness.prepare(...) before launch.`,
          { boundary: "harness" },
        );
      }
      return launchPi(release, launchOptions, prepared, spec);
    },
    readOutcome: readPiOutcome,
  };
}

/** Host folder of the install, checked to hold exactly the version asked for. */
async function resolvePi(
  release: PiRelease,
  cacheDir: string,
  install: boolean,
  signal: AbortSignal,
): Promise<string> {
  const target = join(cacheDir, "harness", `pi-${release.version}`);
  if (!existsSync(target)) {
    if (!install) {
      throw new GimbalError(
        "harness-missing",
        `Pi ${release.version} is not installed (looked in ${target}). Run: gimbal doctor --install pi`,
        { boundary: "harness", details: { target } },
      );
    }
    await installAtomically(target, signal, async (folder) => {
      await npmInstall(folder, [`${release.packageName}@${release.version}`], signal);
      await requireVersion(release, folder);
    });
  }
  await requireVersion(release, target);
  return target;
}

async function requireVersion(release: PiRelease, folder: string): Promise<void> {
  const packageDir = join(folder, "node_modules", release.packageName);
  const found = await readPackageVersion(packageDir);
  if (found === release.version && existsSync(join(packageDir, release.entry))) return;
  throw new GimbalError(
    "harness-version-mismatch",
    `Expected Pi ${release.version} in ${folder}, found ${found ?? "no complete package"}. Remove that folder and run: gimbal doctor --install pi`,
    { boundary: "harness", details: { folder, expected: release.version, found } },
  );
}

function missingNode(node: string): GimbalError {
  return new GimbalError(
    "harness-missing",
    `There is no Node at ${node}. Correct nodePath, or remove that folder and run: gimbal doctor --install pi`,
    { boundary: "harness" },
  );
}
