import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createReferenceBackend, loadPolicy } from "@gimbal-rl/compute";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createToyPolicy, toyBatches } from "../test/toy.js";
import { findCheckpoints } from "./checkpoints.js";
import { metricsPath, readMetrics } from "./metrics-log.js";
import { type CreateTrainerOptions, createTrainer, type Trainer } from "./trainer.js";
import { digestWeights } from "./weights-digest.js";

let runDir = "";
beforeEach(async () => {
  runDir = await mkdtemp(join(tmpdir(), "gimbal-trainer-"));
});
afterEach(() => rm(runDir, { recursive: true, force: true }));

const open = (options: Partial<CreateTrainerOptions> = {}): Promise<Trainer> =>
  createTrainer({
    policy: createToyPolicy(options.seed ?? 1),
    runDir,
    seed: 1,
    schedule: { kind: "cosine", peak: 1e-2, warmupSteps: 1, totalSteps: 4 },
    optimizer: { maxGradientNorm: 1, weightDecay: 0.01 },
    ...options,
  });

async function trainTo(trainer: Trainer, steps: number): Promise<string> {
  while (trainer.completedSteps() < steps) {
    const step = trainer.completedSteps() + 1;
    await trainer.step(await toyBatches(trainer.policy, step), { cursor: step });
  }
  return digestWeights(trainer.policy);
}

const lines = async (): Promise<string[]> =>
  (await readFile(metricsPath(runDir), "utf8")).split("\n").filter((line) => line !== "");

test("a run opened again and again ends in the weights of an uninterrupted one, with one line a step", async () => {
  const other = await mkdtemp(join(tmpdir(), "gimbal-trainer-"));
  const expected = await trainTo(await open({ runDir: other }), 4);
  let digest = "";
  for (let step = 0; step <= 4; step += 1) {
    const trainer = await open({ policy: createToyPolicy(step + 7), seed: step });
    // A fresh process may hold any weights at first; step 0 of the run decides.
    if (step === 0) {
      await rm(runDir, { recursive: true });
      digest = await trainTo(await open(), 0);
      continue;
    }
    expect(trainer.completedSteps()).toBe(step - 1);
    expect(trainer.seed).toBe(1);
    digest = await trainTo(trainer, step);
  }
  expect(digest).toBe(expected);
  expect((await lines()).map((line) => JSON.parse(line).step)).toEqual([1, 2, 3, 4]);
  await rm(other, { recursive: true });
});

test("training replayed from the same batches gives bit-identical weights", async () => {
  const batches = await toyBatches(createToyPolicy(), 1, 24);
  const digests: string[] = [];
  for (const name of ["a", "b"]) {
    const trainer = await open({ runDir: join(runDir, name), epochs: 2, minibatches: 2 });
    await trainer.step(batches);
    digests.push(await digestWeights(trainer.policy));
  }
  expect(digests[0]).toBe(digests[1]);
});

test("each checkpoint is a model folder with the tokenizer of the run's model", async () => {
  const modelDir = join(runDir, "model");
  await mkdir(modelDir);
  await writeFile(join(modelDir, "tokenizer.json"), "{}");
  await writeFile(join(modelDir, "chat_template.jinja"), "{{ x }}");
  await writeFile(join(modelDir, "unrelated.bin"), "no");
  const trainer = await open({ modelDir });
  const expected = await trainTo(trainer, 2);
  await rm(modelDir, { recursive: true });
  await trainTo(trainer, 3);
  expect(await readdir(trainer.checkpointDir())).toEqual([
    "chat_template.jinja",
    "config.json",
    "model.safetensors",
    "optimizer.safetensors",
    "state.json",
    "tokenizer.json",
  ]);
  const second = (await findCheckpoints(runDir))[2];
  const loaded = await loadPolicy(second.dir, createReferenceBackend());
  expect(await digestWeights(loaded)).toBe(expected);
  expect(second.state).toMatchObject({ step: 2, policyVersion: "step-2", seed: 1 });
});

test("a record holds the step's numbers and what the caller added", async () => {
  let nowMs = 0;
  const clock = { nowMs: () => (nowMs += 500) };
  const trainer = await open({ clock });
  const { metrics, record } = await trainer.step(await toyBatches(trainer.policy, 1), {
    pass: 0.5,
  });
  expect(metrics.logprobMismatchMax).toBe(0);
  expect(record).toMatchObject({
    step: 1,
    policyVersion: "step-1",
    seconds: 0.5,
    extra: { pass: 0.5 },
    metrics: { updates: 1, logprobMismatchMax: 0, learningRate: 5e-3 },
  });
  expect(await readMetrics(runDir)).toEqual([record]);
  expect(trainer.policyVersion()).toBe("step-1");
});

test("a damaged latest checkpoint is passed over and its step is trained again", async () => {
  const expected = await trainTo(await open(), 3);
  const [, , , last] = await findCheckpoints(runDir);
  await truncate(join(last.dir, "model.safetensors"), 100);
  const trainer = await open();
  expect(trainer.completedSteps()).toBe(2);
  expect(await lines()).toHaveLength(2);
  expect(await trainTo(trainer, 3)).toBe(expected);
  expect((await findCheckpoints(runDir)).map(({ step }) => step)).toEqual([0, 1, 2, 3]);
});

test("a metrics log that is torn, doubled, ahead or missing is put right", async () => {
  await trainTo(await open(), 2);
  const [first, second] = await lines();
  const ahead = second.replace('"step":2', '"step":9');
  for (const text of [
    `${first}\n${second}\n${ahead}\n`,
    `${first}\n${first}\n${second.slice(0, 30)}`,
    "",
  ]) {
    await writeFile(metricsPath(runDir), text);
    await open();
    expect(await lines()).toEqual([first, second]);
  }
  await rm(metricsPath(runDir));
  await open();
  expect(await lines()).toEqual([first, second]);
});

test("what a killed writer left behind is removed", async () => {
  await trainTo(await open(), 1);
  await mkdir(join(runDir, "checkpoints", ".tmp-2-999"));
  await open();
  expect((await readdir(join(runDir, "checkpoints"))).sort()).toEqual(["0", "1"]);
});

test("retention keeps the newest, every n-th, and the start", async () => {
  const trainer = await open({ retain: { last: 2, every: 3 } });
  await trainTo(trainer, 6);
  expect((await findCheckpoints(runDir)).map(({ step }) => step)).toEqual([0, 3, 5, 6]);
  expect(await readMetrics(runDir)).toHaveLength(6);
});

test("a failed step leaves the last checkpoint good", async () => {
  const trainer = await open();
  await trainTo(trainer, 1);
  const [batch] = await toyBatches(trainer.policy, 2);
  const advantages = batch.terms.advantages.map(() => Number.NaN);
  const poisoned = { ...batch, terms: { ...batch.terms, advantages } };
  await expect(trainer.step([poisoned])).rejects.toMatchObject({ code: "non-finite" });
  expect((await open()).completedSteps()).toBe(1);
});

test("a run folder that is a file is a clear error", async () => {
  const path = join(runDir, "file");
  await writeFile(path, "");
  await expect(open({ runDir: path })).rejects.toMatchObject({ code: "store-unwritable" });
});
