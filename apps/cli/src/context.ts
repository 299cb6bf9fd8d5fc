/**
 * What a command gets from its surroundings; tests pass their own.
 */
import { type Clock, systemClock } from "@gimbal-rl/core";
import { createOutput, type Output } from "./output.js";
import type { TextSink } from "./progress.js";

/** The surroundings of one invocation. */
export interface CliContext {
  /** Version of the `gimbal` command. */
  readonly version: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborted by the first Ctrl-C or SIGTERM. A command then stops cleanly. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  /** Makes the command's output; the one that was made last is closed when the command ends. */
  output(options: { readonly json?: boolean | undefined }): Output;
  /** The exit code when nothing is thrown. Default 0. */
  setExitCode(code: number): void;
}

/** Streams and settings a context is made from. */
export interface ContextOptions {
  readonly version: string;
  readonly stdout: TextSink;
  readonly stderr: TextSink;
  readonly isTerminal?: boolean;
  readonly columns?: () => number;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

/** A context with what the runner of the command reads back. */
export interface OwnedContext extends CliContext {
  exitCode(): number;
  close(): void;
}

/** Creates a context. */
export function createContext(options: ContextOptions): OwnedContext {
  const clock = options.clock ?? systemClock;
  let code = 0;
  let output: Output | null = null;
  return {
    version: options.version,
    cwd: options.cwd ?? process.cwd(),
    env: options.env ?? process.env,
    signal: options.signal ?? new AbortController().signal,
    clock,
    stdout: options.stdout,
    stderr: options.stderr,
    output: ({ json }) => {
      output = createOutput({
        isJson: json === true,
        stdout: options.stdout,
        stderr: options.stderr,
        isTerminal: options.isTerminal ?? false,
        columns: options.columns ?? (() => 80),
        clock,
      });
      return output;
    },
    setExitCode: (value) => {
      code = value;
    },
    exitCode: () => code,
    close: () => output?.close(),
  };
}
