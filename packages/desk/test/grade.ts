/**
 * Grades with the real verifiers, in a folder of this machine.
 */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Sandbox, SandboxExit, Task, Verdict } from "@gimbal-rl/core";
import { createVerifiers } from "@gimbal-rl/verifiers";
import type { Changed } from "./cheats.js";

const verifiers = createVerifiers({ nodePath: process.execPath });

/** The plainest sandbox: files in a folder, no isolation. `sandbox` has the same rank, so it cannot be used here. */
const folderSandbox: Sandbox = {
  level: "process",
  async create({ files, homeFiles }) {
    const root = await mkdtemp(join(tmpdir(), "desk-grade-"));
    const [homeDir, workspaceDir] = [join(root, "home"), join(root, "workspace")];
    const put = async (folder: string, path: string, text: string): Promise<void> => {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    };
    for (const [path, text] of Object.entries(homeFiles)) await put(homeDir, path, text);
    for (const [path, text] of Object.entries(files)) await put(workspaceDir, path, text);
    return {
      level: "process",
      homeDir,
      workspaceDir,
      writeHomeFile: (path, text) => put(homeDir, path, text),
      run: ({ argv: [file = "", ...rest], env, timeoutMs, maxOutputBytes }) =>
        new Promise<SandboxExit>((resolve) => {
          const options = { cwd: workspaceDir, env, timeout: timeoutMs, maxBuffer: maxOutputBytes };
          const child = execFile(file, rest, options, (error, stdout, stderr) => {
            const endedBy = error?.killed === true ? "timeout" : "exit";
            const { exitCode, signalCode: signal } = child;
            const outputBytes = stdout.length + stderr.length;
            const rest = { stdout, stderr, outputBytes, wallMs: 0, cpuMs: null };
            resolve({ exitCode, signal, endedBy, ...rest });
          });
        }),
      diff: async () => ({ changed: {}, refused: [] }),
      [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
    };
  },
};

export async function judge(task: Task, changed: Changed): Promise<Verdict> {
  const verifier = verifiers.get(task.verifier.kind);
  if (verifier === undefined) throw new Error(`No verifier of kind ${task.verifier.kind}`);
  const input = { task, diff: { changed, refused: [] }, sandbox: folderSandbox };
  return verifier.verify(input, AbortSignal.timeout(60_000));
}

export async function grade(task: Task, changed: Changed): Promise<number | null> {
  return (await judge(task, changed)).score;
}
