#!/usr/bin/env node
/**
 * The `gimbal` program: connects the process's streams and signals to `runCli`.
 */
import { readFileSync } from "node:fs";
import { GimbalError } from "@gimbal-rl/core";
import { createContext } from "./context.js";
import { describeFailure } from "./errors.js";
import type { TextSink } from "./progress.js";
import { runCli } from "./run-cli.js";

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

/** A stream that may be closed by its reader (`gimbal inspect run | head`): further text is dropped. */
function toSink(stream: NodeJS.WriteStream): TextSink {
  let isOpen = true;
  stream.on("error", () => {
    isOpen = false;
  });
  return {
    write: (text) => {
      if (isOpen) stream.write(text);
    },
  };
}

/** Resolves when everything written so far was taken, or cannot be. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableEnded) resolve();
    else stream.write("", () => resolve());
  });
}

const stdout = toSink(process.stdout);
const stderr = toSink(process.stderr);
const stop = new AbortController();
let signalExitCode: number | null = null;

function onSignal(signal: NodeJS.Signals): void {
  const code = signal === "SIGINT" ? 130 : signal === "SIGHUP" ? 129 : 143;
  if (signalExitCode !== null) process.exit(code);
  signalExitCode = code;
  stderr.write(`\ngimbal: stopping${signal === "SIGINT" ? " (Ctrl-C again stops at once)" : ""}\n`);
  stop.abort(new GimbalError("aborted", "stopped."));
}

/** Errors outside the awaited road: still one line, never a stack. */
function onLost(error: unknown): void {
  const { exitCode, message } = describeFailure(error, signalExitCode);
  if (message !== null) stderr.write(`gimbal: ${message}\n`);
  if (process.env.GIMBAL_DEBUG === "1" && error instanceof Error) {
    stderr.write(`${error.stack}\n`);
  }
  process.exit(exitCode === 0 ? 1 : exitCode);
}

process.on("SIGINT", onSignal);
process.on("SIGTERM", onSignal);
process.on("SIGHUP", onSignal);
process.on("uncaughtException", onLost);
process.on("unhandledRejection", onLost);

const context = createContext({
  version: manifest.version,
  stdout,
  stderr,
  isTerminal: process.stderr.isTTY === true && process.env.TERM !== "dumb",
  columns: () => process.stderr.columns ?? 80,
  signal: stop.signal,
});
// Work may wait on threads that do not hold the event loop; Node would call that a deadlock and end with code 13.
const awake = setInterval(() => {}, 2 ** 30);
const exitCode = await runCli(process.argv.slice(2), context, {
  signalExitCode: () => signalExitCode,
});
clearInterval(awake);
await Promise.all([flushed(process.stdout), flushed(process.stderr)]);
// A worker or socket that a failed command left behind must not keep the program alive.
process.exit(exitCode);
