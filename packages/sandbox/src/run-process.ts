/**
 * Runs one process with its limits and captures what it prints.
 *
 * Laws: it resolves, whatever the process does (floods, ignores signals, leaves children with our pipes open); the
 * first reason to end it is the one reported; captured bytes never exceed the limit.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { GimbalError, type SandboxCommand, type SandboxExit } from "@gimbal-rl/core";
import { parseReport, reportFd } from "./limits.js";
import { cpuMsOf, findTree, killTree } from "./process-tree.js";

/** How the outer process is started and ended. */
export interface Launch {
  /** The whole argument vector, wrappers included. */
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Text written to descriptor 3. */
  readonly argumentsText: string;
  /** Environment entry by which left-behind children are found; null when a pid namespace ends them. */
  readonly marker: string | null;
}

/** How long pipes may stay open after the process and all that was found of its tree are gone. */
const pipeGraceMs = 1_000;

/**
 * Runs to the end.
 *
 * @throws {GimbalError} `sandbox-failed` when the process could not be started at all.
 */
export async function runProcess(
  launch: Launch,
  command: SandboxCommand,
  signal: AbortSignal,
): Promise<SandboxExit> {
  if (signal.aborted) return unstartedExit();
  const startedAt = performance.now();
  const [file = "", ...rest] = launch.argv;
  const child = spawn(file, rest, {
    cwd: launch.cwd,
    env: launch.env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => reject(startFailure(error.message, error)));
  });
  const pid = child.pid ?? 0;
  sendArguments(child, launch.argumentsText);

  let endedBy: SandboxExit["endedBy"] = "exit";
  let killedCpuMs: number | null = null;
  const end = (reason: SandboxExit["endedBy"]): void => {
    if (endedBy !== "exit" || child.exitCode !== null || child.signalCode !== null) return;
    endedBy = reason;
    const rows = findTree(pid, launch.marker);
    killedCpuMs = rows.length === 0 ? null : cpuMsOf(rows);
    killTree(pid, launch.marker);
  };
  const capture = new OutputCapture(command, () => end("output-limit"));
  capture.attach(child.stdout as Readable, "stdout");
  capture.attach(child.stderr as Readable, "stderr");
  const report = collectReport(child.stdio[reportFd] as Readable);
  const timer = setTimeout(() => end("timeout"), command.timeoutMs);
  const onAbort = (): void => end("aborted");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    const { code, name } = await waitForExit(child, () => killTree(pid, launch.marker));
    const { started, cpuMs } = parseReport(report());
    if (!started && endedBy === "exit") throw startFailure(capture.text("stderr").trim());
    return {
      exitCode: endedBy === "exit" ? code : null,
      signal: name,
      endedBy,
      stdout: capture.text("stdout"),
      stderr: capture.text("stderr"),
      outputBytes: capture.bytes,
      wallMs: performance.now() - startedAt,
      cpuMs: cpuMs ?? killedCpuMs,
    };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

class OutputCapture {
  bytes = 0;
  readonly #chunks: { readonly stdout: Buffer[]; readonly stderr: Buffer[] } = {
    stdout: [],
    stderr: [],
  };
  readonly #command: SandboxCommand;
  readonly #onLimit: () => void;

  constructor(command: SandboxCommand, onLimit: () => void) {
    this.#command = command;
    this.#onLimit = onLimit;
  }

  attach(stream: Readable, name: "stdout" | "stderr"): void {
    const listener = name === "stdout" ? this.#command.onStdout : this.#command.onStderr;
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => {
      const room = this.#command.maxOutputBytes - this.bytes;
      if (room <= 0) return;
      const kept = chunk.length > room ? chunk.subarray(0, room) : chunk;
      this.bytes += kept.length;
      this.#chunks[name].push(kept);
      listener?.(kept);
      if (this.bytes >= this.#command.maxOutputBytes) this.#onLimit();
    });
  }

  text(name: "stdout" | "stderr"): string {
    return Buffer.concat(this.#chunks[name]).toString("utf8");
  }
}

function sendArguments(child: ChildProcess, text: string): void {
  const pipe = child.stdio[3] as Writable;
  pipe.on("error", () => undefined);
  pipe.end(text);
}

function collectReport(stream: Readable): () => string {
  let text = "";
  stream.on("error", () => undefined);
  stream.on("data", (chunk: Buffer) => {
    if (text.length < 1024) text += chunk.toString("latin1");
  });
  return () => text;
}

/** Resolves when the process is gone and its pipes are closed, by force if need be. */
function waitForExit(
  child: ChildProcess,
  sweep: () => void,
): Promise<{ readonly code: number | null; readonly name: string | null }> {
  return new Promise((resolve) => {
    let grace: NodeJS.Timeout | undefined;
    child.once("exit", () => {
      // Children that outlived it would hold the pipes open, and the workspace busy.
      sweep();
      grace = setTimeout(() => {
        for (const stream of child.stdio) stream?.destroy();
      }, pipeGraceMs);
    });
    child.once("close", (code, name) => {
      clearTimeout(grace);
      resolve({ code, name });
    });
  });
}

function startFailure(found: string, cause?: unknown): GimbalError {
  return new GimbalError(
    "sandbox-failed",
    `The sandbox could not start the process${found === "" ? "" : ` (${found})`}; run "gimbal doctor" to see which levels this machine offers.`,
    { cause, boundary: "sandbox" },
  );
}

function unstartedExit(): SandboxExit {
  return {
    exitCode: null,
    signal: null,
    endedBy: "aborted",
    stdout: "",
    stderr: "",
    outputBytes: 0,
    wallMs: 0,
    cpuMs: 0,
  };
}
