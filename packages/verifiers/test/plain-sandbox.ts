/** A Sandbox of the plainest kind, so that these tests need no package of a higher rank. It isolates nothing. */
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Sandbox, SandboxCommand, SandboxExit, Task } from "@gimbal-rl/core";
import { asId } from "@gimbal-rl/core";

/** Counts what it made, so that tests can see that nothing is left. */
export function createPlainSandbox(): Sandbox & { readonly open: () => number } {
  let open = 0;
  return {
    level: "process",
    open: () => open,
    create: async ({ files, homeFiles }) => {
      const root = mkdtempSync(join(tmpdir(), "verify-"));
      open += 1;
      const write = (folder: string, path: string, text: string): void => {
        mkdirSync(dirname(join(root, folder, path)), { recursive: true });
        writeFileSync(join(root, folder, path), text);
      };
      mkdirSync(join(root, "workspace"));
      for (const [path, text] of Object.entries(files)) write("workspace", path, text);
      for (const [path, text] of Object.entries(homeFiles)) write("home", path, text);
      return {
        level: "process",
        homeDir: join(root, "home"),
        workspaceDir: join(root, "workspace"),
        writeHomeFile: async (path, text) => write("home", path, text),
        run: (command) => run(command, join(root, "workspace")),
        diff: async () => ({ changed: {}, refused: [] }),
        [Symbol.asyncDispose]: async () => {
          open -= 1;
          rmSync(root, { recursive: true });
        },
      };
    },
  };
}

function run(command: SandboxCommand, cwd: string): Promise<SandboxExit> {
  // As the real one: a program that is not there ends with 127 instead of failing the start.
  const argv = ["-c", 'exec "$@"', "sh", ...command.argv];
  return new Promise((resolve) => {
    const options = {
      cwd,
      env: command.env,
      timeout: command.timeoutMs,
      killSignal: "SIGKILL" as const,
      maxBuffer: command.maxOutputBytes,
    };
    const child = execFile("/bin/sh", argv, options, (error, stdout, stderr) => {
      const overflow =
        (error as NodeJS.ErrnoException | null)?.code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER";
      const endedBy = overflow
        ? "output-limit"
        : child.signalCode === "SIGKILL"
          ? "timeout"
          : "exit";
      resolve({
        exitCode: child.exitCode,
        signal: child.signalCode,
        endedBy,
        stdout,
        stderr,
        outputBytes: stdout.length + stderr.length,
        wallMs: 0,
        cpuMs: null,
      });
    });
  });
}

/** A task with the parts that matter to a test. */
export function makeTask(parts: Partial<Task>): Task {
  return {
    taskId: asId("t1"),
    suite: "test",
    family: "test",
    split: "train",
    instruction: "Do it.",
    files: {},
    protectedPaths: [],
    gradingFiles: {},
    verifier: { kind: "file-state-equals", options: {} },
    budgets: {},
    ...parts,
  };
}
