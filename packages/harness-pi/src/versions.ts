/**
 * The Pi versions this adapter knows, and what differs between them.
 */
import { GimbalError } from "@gimbal-rl/core";

/** A supported version of Pi. */
export type PiVersion = "1.6.0" | "0.74.2";

/** What the adapter must know about one version. */
export interface PiRelease {
  readonly version: PiVersion;
  readonly packageName: string;
  /** Entry script, relative to the package. */
  readonly entry: string;
  /** Oldest Node it starts on. */
  readonly minimumNode: readonly [major: number, minor: number];
  /** How `models.json` names the environment variable that holds the key. */
  readonly keyReference: string;
  /** Flags that switch off discovery of things outside the task. They leave the prompt as it is. */
  readonly quietFlags: readonly string[];
  /** Whether `--` ends the options. */
  readonly endOfOptions: boolean;
}

/** The environment variable that carries the session's key. */
export const keyVariable = "GIMBAL_KEY";

const discoveryOff = ["--no-extensions", "--no-skills", "--no-prompt-templates", "--no-themes"];

const releases: Readonly<Record<PiVersion, PiRelease>> = {
  "1.6.0": {
    version: "1.6.0",
    packageName: "@earendil-works/pi-coding-agent",
    entry: "dist/bundle/cli.js",
    minimumNode: [22, 19],
    keyReference: `$${keyVariable}`,
    quietFlags: [...discoveryOff, "--no-approve"],
    endOfOptions: true,
  },
  "0.74.2": {
    version: "0.74.2",
    packageName: "@earendil-works/pi-coding-agent",
    entry: "dist/cli.js",
    minimumNode: [20, 6],
    keyReference: keyVariable,
    quietFlags: discoveryOff,
    endOfOptions: false,
  },
};

/** @throws {GimbalError} `config-invalid` for a version without a known configuration. */
export function findRelease(version: string): PiRelease {
  const release = Object.values(releases).find((entry) => entry.version === version);
  if (release !== undefined) return release;
  throw new GimbalError(
    "config-invalid",
    `Pi ${version} is not supported; use ${Object.keys(releases).join(" or ")}.`,
    { boundary: "config" },
  );
}
