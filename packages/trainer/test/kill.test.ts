/** kill -9 at the boundaries of steps: the run continues to identical weights with one metrics line a step. */
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readMetrics } from "../src/metrics-log.js";
import { trainToy } from "./toy-run.js";

const child = fileURLToPath(new URL("kill-child.ts", import.meta.url));
const packageDir = fileURLToPath(new URL("..", import.meta.url));

function run(runDir: string, killAt: string): Promise<{ signal: string | null; stdout: string }> {
  const flags = ["--conditions=@gimbal-rl/source", "--import", "tsx"];
  return new Promise((resolve, reject) => {
    const options = { cwd: packageDir, timeout: 60_000 };
    execFile(
      process.execPath,
      [...flags, child, runDir, "2", killAt],
      options,
      (error, stdout, stderr) => {
        const signal = error?.signal ?? null;
        if (error !== null && signal !== "SIGKILL") reject(new Error(stderr));
        else resolve({ signal, stdout });
      },
    );
  });
}

test("a run killed before, between and after its writes resumes to the weights of an unbroken run", async () => {
  const root = await mkdtemp(join(tmpdir(), "gimbal-kill-"));
  const unbroken = await trainToy(join(root, "unbroken"), 2, () => {});
  const broken = join(root, "broken");
  // Ordered as one run meets them: each later point is reached by the run that continues after the kill before it.
  const points = ["checkpoint-written:0", "checkpoint-written:1", "checkpoint-end:1"];
  points.push("step-start:2", "step-end:2");
  for (const point of points) {
    expect((await run(broken, point)).signal, point).toBe("SIGKILL");
  }
  expect((await run(broken, "never")).stdout).toBe(unbroken);
  expect((await readMetrics(broken)).map(({ step }) => step)).toEqual([1, 2]);
  const numbers = (records: Awaited<ReturnType<typeof readMetrics>>): unknown[] =>
    records.map(({ metrics, extra }) => ({ metrics, extra }));
  expect(numbers(await readMetrics(broken))).toEqual(
    numbers(await readMetrics(join(root, "unbroken"))),
  );
  await rm(root, { recursive: true });
}, 120_000);
