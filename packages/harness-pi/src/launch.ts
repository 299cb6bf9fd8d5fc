/**
 * The launch of one Pi run: files in HOME, flags, environment.
 *
 * Laws: pure; the key is in the environment only; at level `namespace` every path that Pi puts into its prompt is
 * fixed, so the first requests of all attempts at a task are equal byte for byte on every machine.
 */
import { dirname, join } from "node:path";
import { GimbalError, type HarnessLaunch, type HarnessRunSpec } from "@gimbal-rl/core";
import { keyVariable, type PiRelease } from "./versions.js";

/** Options that shape a launch. */
export interface PiLaunchOptions {
  /** Whether Pi summarises old turns by itself when its context fills up. */
  readonly compaction: boolean;
  /** Names of the tools offered; undefined = Pi's default (read, bash, edit, write). */
  readonly tools: readonly string[] | undefined;
  /** Pi's thinking level. */
  readonly thinking: string;
  /** Options of the Node that runs Pi. */
  readonly nodeOptions: readonly string[];
}

/** Where things are on the host after `prepare`. */
export interface PiInstall {
  readonly installDir: string;
  readonly nodePath: string;
  /** The folder of the compile cache, filled by `prepare`; null = none. */
  readonly compileCacheDir: string | null;
}

/** Fixed places at level `namespace`. */
const insideInstallDir = "/opt/pi";
/** See {@link insideInstallDir}. */
const insideNodeDir = "/opt/node";
const insideCompileCacheDir = "/opt/pi-cache";

/** The system limits one argument to 128 KiB. */
const maxInstructionBytes = 120_000;

/**
 * Builds the launch.
 *
 * @throws {GimbalError} `invalid-request` for an instruction that does not fit on a command line.
 */
export function launchPi(
  release: PiRelease,
  options: PiLaunchOptions,
  install: PiInstall,
  spec: HarnessRunSpec,
): HarnessLaunch {
  const fixed = spec.sandboxLevel === "namespace";
  const installDir = fixed ? insideInstallDir : install.installDir;
  const node = fixed ? `${insideNodeDir}/bin/node` : install.nodePath;
  const cacheDir = fixed ? insideCompileCacheDir : install.compileCacheDir;
  const entry = join(installDir, "node_modules", release.packageName, release.entry);
  return {
    argv: [node, ...options.nodeOptions, entry, ...piArguments(release, options, spec)],
    env: {
      HOME: spec.homeDir,
      PATH: `${dirname(node)}:/usr/local/bin:/usr/bin:/bin`,
      [keyVariable]: spec.key,
      PI_OFFLINE: "1",
      PI_TELEMETRY: "0",
      ...(install.compileCacheDir === null || cacheDir === null
        ? { NODE_DISABLE_COMPILE_CACHE: "1" }
        : { NODE_COMPILE_CACHE: cacheDir }),
    },
    homeFiles: {
      ".pi/agent/models.json": json(modelsFile(release, spec)),
      ".pi/agent/settings.json": json(settingsFile(options)),
    },
    readOnlyPaths: [],
    ...(fixed ? { readOnlyMounts: mounts(install) } : {}),
  };
}

function mounts(install: PiInstall): HarnessLaunch["readOnlyMounts"] & object {
  const { compileCacheDir } = install;
  return [
    { hostPath: install.installDir, insidePath: insideInstallDir },
    { hostPath: install.nodePath, insidePath: `${insideNodeDir}/bin/node` },
    ...(compileCacheDir === null
      ? []
      : [{ hostPath: compileCacheDir, insidePath: insideCompileCacheDir }]),
  ];
}

function piArguments(
  release: PiRelease,
  options: PiLaunchOptions,
  spec: HarnessRunSpec,
): readonly string[] {
  if (Buffer.byteLength(spec.instruction) > maxInstructionBytes) {
    throw new GimbalError(
      "invalid-request",
      `The instruction has ${Buffer.byteLength(spec.instruction)} bytes; Pi takes it as an argument of at most ${maxInstructionBytes}. Put the long part into a file of the workspace.`,
      { boundary: "harness" },
    );
  }
  // "@name" would be read as a file to attach, "-x" as an option where "--" is unknown.
  const guarded = release.endOfOptions ? /^@/ : /^[@-]/;
  const prompt = guarded.test(spec.instruction) ? ` ${spec.instruction}` : spec.instruction;
  return [
    ...["-p", "--mode", "json", "--no-session", ...release.quietFlags],
    ...["--provider", "gimbal", "--model", spec.model, "--thinking", options.thinking],
    ...(options.tools === undefined ? [] : ["--tools", options.tools.join(",")]),
    ...(release.endOfOptions ? ["--"] : []),
    prompt,
  ];
}

function modelsFile(release: PiRelease, spec: HarnessRunSpec): unknown {
  const model = {
    id: spec.model,
    reasoning: false,
    input: ["text"],
    contextWindow: spec.contextTokens,
    maxTokens: spec.maxOutputTokens,
  };
  const provider = {
    baseUrl: spec.baseUrls.openai,
    api: "openai-completions",
    apiKey: release.keyReference,
    compat: { supportsDeveloperRole: false },
    models: [model],
  };
  return { providers: { gimbal: provider } };
}

function settingsFile(options: PiLaunchOptions): unknown {
  return {
    compaction: { enabled: options.compaction },
    // The gateway retries upstream by itself; one quick try here covers a dropped connection.
    retry: { enabled: true, maxRetries: 1, baseDelayMs: 500, provider: { maxRetries: 0 } },
    quietStartup: true,
    enableInstallTelemetry: false,
    enableAnalytics: false,
    collapseChangelog: true,
    cacheWarming: "off",
    defaultProjectTrust: "never",
  };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
