/**
 * Anything thrown -> one line for a person and an exit code.
 *
 * Law: a user never sees a stack trace unless GIMBAL_DEBUG=1. Exit codes: 0 done, 1 failed, 2 bad usage,
 * 130 stopped by Ctrl-C, 143 by SIGTERM.
 */
import { type ErrorCode, GimbalError } from "@gimbal-rl/core";
import { CommanderError } from "commander";

/** What the command line says and returns about a failure. */
export interface CliFailure {
  readonly exitCode: number;
  /** One line without the `gimbal:` prefix; null when everything was said already. */
  readonly message: string | null;
}

const usageCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["bad-usage"]);

/** What to do about errors of the operating system, by its code. */
const systemHints: Readonly<Record<string, string>> = {
  EACCES: "You may not read or write there. Choose another path or change its permissions.",
  EADDRINUSE: "Another program uses that port. Choose another one, or 0 for any free port.",
  EADDRNOTAVAIL: "This machine does not have that address. Use 127.0.0.1.",
  EISDIR: "A file was expected, a folder was found. Check the path.",
  EMFILE: "Too many files are open. Raise the limit (ulimit -n) and try again.",
  ENOENT: "Check the path.",
  ENOSPC: "The disk is full. Free some space and try again.",
  ENOTDIR: "A folder was expected, a file was found. Check the path.",
  EPERM: "The system does not allow it. Choose another path or change its permissions.",
  EROFS: "The file system is read-only. Choose another path.",
};

/** Folds text to one line. */
function toOneLine(text: string): string {
  return text.replace(/\s*[\r\n]+\s*/g, " ").trim();
}

function systemCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}

/** A usage mistake: exit code 2. The message says what was found and expected. */
export function usageError(message: string): GimbalError {
  return new GimbalError("bad-usage", message);
}

/**
 * Judges anything that was thrown.
 * @param signalExitCode - The code to end with when the user stopped the command; null when nobody did.
 * @param commandName - Whose help a usage error names.
 */
export function describeFailure(
  error: unknown,
  signalExitCode: number | null,
  commandName?: string,
): CliFailure {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return { exitCode: 0, message: null };
    // `commander.help`: no command was given, and its help was printed.
    if (error.code === "commander.help") return { exitCode: 2, message: null };
    const text = toOneLine(error.message).replace(/^error: /, "");
    const help = commandName === undefined ? "gimbal --help" : `gimbal ${commandName} --help`;
    return { exitCode: 2, message: `${text.replace(/.?$/, endSentence)} See ${help}.` };
  }
  if (signalExitCode !== null && isAbort(error)) {
    return { exitCode: signalExitCode, message: abortText(error) };
  }
  if (GimbalError.is(error)) {
    const exitCode = usageCodes.has(error.code) ? 2 : 1;
    return { exitCode, message: toOneLine(error.message) };
  }
  const text = toOneLine(error instanceof Error ? error.message : String(error));
  const hint = systemHints[systemCode(error) ?? ""];
  if (hint !== undefined)
    return { exitCode: 1, message: `${text.replace(/.?$/, endSentence)} ${hint}` };
  return {
    exitCode: 1,
    message: `unexpected error: ${text.replace(/.?$/, endSentence)} Run again with GIMBAL_DEBUG=1 for the stack, and please report it.`,
  };
}

/** Ends a sentence that may have ended already. */
function endSentence(last: string): string {
  return last === "." ? "." : `${last}.`;
}

function isAbort(error: unknown): boolean {
  if (GimbalError.is(error)) return error.code === "aborted";
  return error instanceof Error && error.name === "AbortError";
}

function abortText(error: unknown): string {
  return GimbalError.is(error) ? toOneLine(error.message) : "stopped.";
}
