/**
 * The Harness port: how one unmodified agent program is started and how its own event stream is read.
 * A harness never sees tokens; it gets a base URL and a key.
 */
import type { ReadOnlyMount, SandboxLevel } from "./sandbox.js";
import type { Budgets } from "./task.js";

/** What a harness needs to know to start. */
export interface HarnessRunSpec {
  readonly instruction: string;
  /** Model name to send on the wire. */
  readonly model: string;
  /** Base URLs per vendor style, without a trailing slash; `openai` ends in `/v1`. */
  readonly baseUrls: {
    readonly openai: string;
    readonly anthropic: string;
    readonly google: string;
  };
  /** The session's capability key. */
  readonly key: string;
  /** Paths as seen inside the sandbox. */
  readonly homeDir: string;
  readonly workspaceDir: string;
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  readonly budgets: Budgets;
  /** Where it runs. At `namespace` an adapter may place its install at a fixed path (`readOnlyMounts`), so that
   * prompts that name it are equal on every machine. Absent = `process`. */
  readonly sandboxLevel?: SandboxLevel;
}

/** A ready-to-run process. */
export interface HarnessLaunch {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Files to write in HOME first, relative path to text. */
  readonly homeFiles: Readonly<Record<string, string>>;
  /** Host folders the process reads, mounted read-only. */
  readonly readOnlyPaths: readonly string[];
  /** Host paths the process reads at other paths; only when the spec's level is `namespace`. */
  readonly readOnlyMounts?: readonly ReadOnlyMount[];
}

/** What the harness's own event stream says happened. Exit codes lie; this does not rely on them alone. */
export interface HarnessOutcome {
  readonly status: "completed" | "failed";
  /** The last assistant text, when there is one. */
  readonly finalText: string | null;
  /** The harness's own words for a failure. */
  readonly errorText: string | null;
  readonly toolCalls: number;
  readonly toolErrors: number;
  /** The harness's own id of the session, when it has one. */
  readonly nativeSessionId: string | null;
}

/** One agent program. */
export interface Harness {
  readonly id: string;
  readonly version: string;
  /** Checks that it is installed, installing it into the cache when `install` is true.
   * @throws {GimbalError} `harness-missing`, `harness-version-mismatch`. */
  prepare(options: { readonly install: boolean; readonly signal: AbortSignal }): Promise<void>;
  /** Pure: the launch for one run. Call after `prepare`. */
  launch(spec: HarnessRunSpec): HarnessLaunch;
  /** Pure: reads the outcome from what it printed. */
  readOutcome(exit: {
    readonly exitCode: number | null;
    readonly stdout: string;
    readonly stderr: string;
  }): HarnessOutcome;
}
