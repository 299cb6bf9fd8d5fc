/**
 * Makes sandboxes at a level.
 *
 * Law: `auto` never promises more than it got; the level that came out is on the sandbox and on every instance.
 */
import { tmpdir } from "node:os";
import { GimbalError, type Sandbox, type SandboxLevel } from "@gimbal-rl/core";
import { detectNamespaces } from "./detect-namespaces.js";
import { createInstance } from "./instance.js";
import type { ProcessLimits } from "./limits.js";
import { type DiffLimits, defaultDiffLimits } from "./workspace-diff.js";

/** Options of {@link createSandbox}. */
export interface SandboxOptions {
  /** `auto` (default) takes `namespace` where it works, else `process`. */
  readonly level?: "auto" | SandboxLevel;
  /** Folder in which instances are made. Default: the system's folder for temporary files. */
  readonly root?: string;
  readonly limits?: ProcessLimits;
  readonly diffLimits?: Partial<DiffLimits>;
  /** Size of each of /tmp and /dev/shm at level `namespace`. Default 256 MiB. */
  readonly scratchBytes?: number;
  /** The tool for namespaces. Default: bubblewrap, else unshare. */
  readonly tool?: "bubblewrap" | "unshare";
}

/**
 * Creates a sandbox factory.
 *
 * @throws {GimbalError} `unavailable` when level `namespace` is asked for and this machine cannot do it.
 * @example
 * const sandbox = createSandbox({ level: "auto" });
 */
export function createSandbox(options: SandboxOptions = {}): Sandbox {
  const asked = options.level ?? "auto";
  const support = asked === "process" ? null : detectNamespaces(options.tool);
  if (asked === "namespace" && support?.tool === null) {
    throw new GimbalError(
      "unavailable",
      `Level "namespace" was asked for, but this machine cannot make namespaces (${support.reason}). Install bubblewrap (apt-get install bubblewrap), or use level "process", which does not hold against a hostile agent.`,
      { boundary: "sandbox" },
    );
  }
  const namespace = support === null || support.tool === null ? null : support;
  const settings = {
    namespace,
    root: options.root ?? tmpdir(),
    scratchBytes: options.scratchBytes ?? 268_435_456,
    diffLimits: { ...defaultDiffLimits, ...options.diffLimits },
    limits: {
      memoryBytes: 4_294_967_296,
      fileBytes: 268_435_456,
      ...(namespace === null ? {} : { processes: 1_024 }),
      ...options.limits,
    },
  };
  return {
    level: namespace === null ? "process" : "namespace",
    create: (spec) => createInstance(settings, spec),
  };
}
