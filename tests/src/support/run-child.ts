/** Starts the training child of `train-child.ts` and follows what it tells until it ends or is killed. */
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { AttemptRecord } from "@gimbal-rl/rollout";
import type { RunEvent, RunSummary } from "@gimbal-rl/run";

/** What the child prints. */
export type ChildEvent = RunEvent | { readonly type: "summary"; readonly summary: RunSummary };

/** How the child ended and what it told before. */
export interface ChildEnd {
  readonly signal: string | null;
  readonly records: readonly AttemptRecord[];
  readonly summary: RunSummary | null;
}

/** When the child dies: by itself at a named point, or by the caller, who sees each event. */
export interface ChildOptions {
  readonly killAt?: string;
  readonly onEvent?: (event: ChildEvent, kill: () => void) => void;
}

const child = fileURLToPath(new URL("train-child.ts", import.meta.url));
const packageDir = fileURLToPath(new URL("../..", import.meta.url));

/**
 * Runs the child to its end.
 * @throws {Error} when it fails by itself.
 */
export async function runTrainChild(
  runDir: string,
  modelDir: string,
  { killAt = "", onEvent }: ChildOptions = {},
): Promise<ChildEnd> {
  // A killed process leaves its sandbox folders behind; here they go with the folder of the test.
  const temporary = join(dirname(runDir), "tmp");
  await mkdir(temporary, { recursive: true });
  const flags = ["--conditions=@gimbal-rl/source", "--import", "tsx"];
  const running = spawn(process.execPath, [...flags, child, runDir, modelDir, killAt], {
    cwd: packageDir,
    env: { ...process.env, TMPDIR: temporary },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const timeout = setTimeout(() => running.kill("SIGKILL"), 120_000);
  let errors = "";
  running.stderr.on("data", (chunk: Buffer) => {
    errors += chunk.toString("utf8");
  });
  const ended = new Promise<string | null>((resolve, reject) => {
    running.once("error", reject);
    running.once("close", (code, signal) => {
      if (code === 0 || signal === "SIGKILL") resolve(signal);
      else reject(new Error(`The training child ended with code ${code}: ${errors}`));
    });
  });
  const records: AttemptRecord[] = [];
  let summary: RunSummary | null = null;
  try {
    for await (const line of createInterface({ input: running.stdout })) {
      const event = JSON.parse(line) as ChildEvent;
      if (event.type === "attempt-end") records.push(event.record);
      if (event.type === "summary") summary = event.summary;
      onEvent?.(event, () => running.kill("SIGKILL"));
    }
    return { signal: await ended, records, summary };
  } finally {
    clearTimeout(timeout);
    running.kill("SIGKILL");
  }
}
