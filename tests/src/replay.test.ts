/**
 * Law: from the same start, the groups that a run stored decide its weights bit for bit, with 1, 2 or 4 threads, without
 * a harness, a sampler or a model call.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createSandbox } from "@gimbal-rl/sandbox";
import { continueGrpoRun, replayGrpoRun } from "@gimbal-rl/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { editTensors, writeScribePolicy } from "./support/scribe-policy.js";
import { createScribeRun, exampleHarness } from "./support/scribe-run.js";

const { signal } = new AbortController();
let root = "";
let runDir = "";

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "gimbal-replay-test-"));
  runDir = join(root, "run");
  const modelDir = join(root, "model");
  await writeScribePolicy(modelDir);
  const sandbox = createSandbox();
  await createScribeRun({ runDir, sandboxLevel: sandbox.level, steps: 2, heldout: 0, threads: 1 });
  await continueGrpoRun({ runDir, modelDir, sandbox, harness: exampleHarness }, signal);
}, 120_000);

afterAll(() => rm(root, { recursive: true, force: true }));

test.each([1, 2, 4])(
  "a replay from the stored groups with %d threads ends in the run's weights",
  async (threads) => {
    const replayed = await replayGrpoRun({ runDir, threads }, signal);
    expect(replayed.steps).toBe(2);
    expect(replayed.weights).toBe(replayed.expected);
    expect(replayed.isIdentical).toBe(true);
  },
);

test("a replay from a start that differs in one bit ends in other weights and says so", async () => {
  const modelDir = join(root, "flipped");
  await writeScribePolicy(modelDir);
  await editTensors(join(modelDir, "model.safetensors"), (tensor) => {
    const bits = new Uint32Array(tensor("model.norm.weight").buffer);
    bits[0] = (bits[0] ?? 0) ^ 1;
  });
  const replayed = await replayGrpoRun({ runDir, threads: 1, modelDir }, signal);
  expect(replayed.weights).not.toBe(replayed.expected);
  expect(replayed.isIdentical).toBe(false);
});
