/**
 * Stage 4: checkpoints of the SFT run in the real harness, and the one that becomes the bundled policy.
 *
 * The start of the demo is an ordinary earlier checkpoint: the first whose pass@1 at training temperature reaches the
 * target on tasks of its own (never those the demo evaluates on).
 */
import { createHash } from "node:crypto";
import { copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createDeskTasks } from "@gimbal-rl/desk";
import { runTasks } from "@gimbal-rl/sdk";
import { findCheckpoints } from "@gimbal-rl/trainer";
import { modelDir, workDir } from "./paths.js";
import { createPi } from "./pi.js";

/** A seed that no demo uses for its held-out tasks. */
const selectionSeed = 4_000_000_001;

/** What a checkpoint can do. */
export interface CheckpointScore {
  readonly step: number;
  readonly passAt1: number;
  readonly byFamily: Readonly<Record<string, number>>;
}

/** Measures one checkpoint. */
export async function scoreCheckpoint(step: number, tasks: number): Promise<CheckpointScore> {
  const { harness, sandbox } = await createPi("namespace");
  const checkpointDir = join(workDir, "sft", "checkpoints", String(step));
  const weights = createHash("sha256")
    .update(await readFile(join(checkpointDir, "model.safetensors")))
    .digest("hex");
  const result = await runTasks(
    {
      // Stored attempts are not run again; those of an earlier build have other weights.
      runDir: join(workDir, `select-${weights.slice(0, 8)}-${step}-${tasks}`),
      modelDir: checkpointDir,
      harness,
      sandbox,
      tasks: createDeskTasks({ split: "heldout", seed: selectionSeed, count: tasks }),
      samples: 1,
      seed: selectionSeed,
      temperature: 1,
      concurrency: 3,
    },
    new AbortController().signal,
  );
  const byFamily = new Map<string, number[]>();
  for (const task of result.tasks) {
    byFamily.set(task.family, [...(byFamily.get(task.family) ?? []), task.score]);
  }
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  return {
    step,
    passAt1: mean(result.tasks.map((task) => task.score)),
    byFamily: Object.fromEntries([...byFamily].map(([family, scores]) => [family, mean(scores)])),
  };
}

/** Measures the checkpoints in order until one reaches the target; returns all that were measured. */
export async function selectCheckpoint(target: number, tasks: number): Promise<CheckpointScore[]> {
  const scores: CheckpointScore[] = [];
  for (const { step } of await findCheckpoints(join(workDir, "sft"))) {
    if (step === 0) continue;
    const score = await scoreCheckpoint(step, tasks);
    process.stderr.write(`${JSON.stringify(score)}\n`);
    scores.push(score);
    if (score.passAt1 >= target) break;
  }
  return scores;
}

/** Makes a checkpoint the bundled policy. */
export async function bundleCheckpoint(step: number): Promise<void> {
  const from = join(workDir, "sft", "checkpoints", String(step));
  for (const name of ["config.json", "model.safetensors"]) {
    await copyFile(join(from, name), join(modelDir, name));
  }
}
