/**
 * The Sandbox port: where a harness and its tools run.
 */

/** What a sandbox promises (design.md 1.7). */
export type SandboxLevel = "process" | "namespace";

/** A host file or folder that a process may read at another path. */
export interface ReadOnlyMount {
  readonly hostPath: string;
  /** Absolute path seen inside. */
  readonly insidePath: string;
}

/** A process to run inside a sandbox. Paths are those seen inside. */
export interface SandboxCommand {
  readonly argv: readonly string[];
  /** The whole environment; nothing is inherited except what the sandbox itself needs. */
  readonly env: Readonly<Record<string, string>>;
  /** Default: the workspace. */
  readonly cwd?: string;
  readonly timeoutMs: number;
  /** Bytes of stdout and stderr together; reaching it kills the process group. */
  readonly maxOutputBytes: number;
  /** Host paths this process alone may read, besides those of the instance. */
  readonly readOnlyPaths?: readonly string[];
  /** Read-only mounts at fixed paths. Only level `namespace` can do this; level `process` refuses them. */
  readonly readOnlyMounts?: readonly ReadOnlyMount[];
  readonly onStdout?: (chunk: Uint8Array) => void;
  readonly onStderr?: (chunk: Uint8Array) => void;
}

/** How a process ended. */
export interface SandboxExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly endedBy: "exit" | "timeout" | "output-limit" | "aborted";
  readonly stdout: string;
  readonly stderr: string;
  readonly outputBytes: number;
  readonly wallMs: number;
  /** CPU time of the process tree, user and system, when the platform tells; null = unknown. */
  readonly cpuMs: number | null;
}

/** A workspace's change, relative POSIX path to new text (null = deleted). */
export interface WorkspaceDiff {
  readonly changed: Readonly<Record<string, string | null>>;
  /** Paths that could not be carried: links out of the tree, devices, too large, not UTF-8. */
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
}

/** What a sandbox instance is made from. */
export interface SandboxSpec {
  /** Files of the workspace, relative POSIX path to text. */
  readonly files: Readonly<Record<string, string>>;
  /** Files of HOME. */
  readonly homeFiles: Readonly<Record<string, string>>;
  /** Host folders the process may read, mounted read-only at the same path (the harness install, Node). */
  readonly readOnlyPaths: readonly string[];
}

/** One isolated place with a HOME and a workspace. */
export interface SandboxInstance {
  readonly level: SandboxLevel;
  /** Paths as a process inside sees them; equal for every instance at level `namespace`. */
  readonly homeDir: string;
  readonly workspaceDir: string;
  /** Adds or replaces a file in HOME before a run. */
  writeHomeFile(relativePath: string, text: string): Promise<void>;
  run(command: SandboxCommand, signal: AbortSignal): Promise<SandboxExit>;
  /** Reads what changed against the files it was created with. */
  diff(): Promise<WorkspaceDiff>;
  /** Kills every process and removes the folders. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Makes sandbox instances. */
export interface Sandbox {
  readonly level: SandboxLevel;
  create(spec: SandboxSpec): Promise<SandboxInstance>;
}
