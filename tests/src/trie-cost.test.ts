/**
 * Law: a group's trie costs its unique tokens, and its gradient is that of the separate sequences within 1e-5 relative
 * in f32; on groups captured from a real harness.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPolicy, createWasmBackend, type ModelConfig } from "@gimbal-rl/compute";
import type { TrainingBatch, TrajectoryGroup } from "@gimbal-rl/core";
import { buildTrainingBatch } from "@gimbal-rl/graph";
import { sumOfWeights } from "@gimbal-rl/objective";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { buildGroups } from "@gimbal-rl/rollout";
import { afterAll, beforeAll, expect, test } from "vitest";
import { collectScribe } from "./support/collect-scribe.js";
import { writeScribePolicy } from "./support/scribe-policy.js";

const size = 6;
/** Fixed beforehand; one of each sign and size, so that no two attempts cancel. */
const advantages = [1, -0.5, 0.25, -1.5, 0.7, -0.2];

let root = "";
let vocabularySize = 0;
let group: TrajectoryGroup;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "gimbal-trie-"));
  const modelDir = join(root, "model");
  await writeScribePolicy(modelDir);
  ({ vocabularySize } = (await loadRendererFromFolder(modelDir)).tokenizer);
  const { groups, store } = await collectScribe(modelDir, { groups: 1, size });
  const built = await buildGroups(groups, store);
  const [only] = built.groups;
  if (only === undefined) throw new Error("One group was planned.");
  group = only;
});

afterAll(() => rm(root, { recursive: true, force: true }));

/** Every prefix of every branch is one unique token. */
function countUniqueTokens(): { readonly unique: number; readonly total: number } {
  const prefixes = new Set<string>();
  let total = 0;
  for (const { trajectory } of group.members) {
    for (const { segments } of trajectory.branches) {
      const ids = segments.flatMap((segment) => segment.ids);
      total += ids.length;
      ids.reduce((prefix, id) => {
        const longer = `${prefix}.${id}`;
        prefixes.add(longer);
        return longer;
      }, "");
    }
  }
  return { unique: prefixes.size, total };
}

interface Gradient {
  readonly rows: number;
  readonly values: ReadonlyMap<string, Float32Array>;
}

/** The shape of a small real policy, with ordinary random weights: the captured tokens matter here, not who chose them. */
const shape: Omit<ModelConfig, "vocabularySize"> = {
  architecture: "qwen3",
  width: 64,
  intermediateWidth: 160,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headWidth: 16,
  normEpsilon: 1e-6,
  ropeTheta: 10_000,
  maxPositions: 2048,
  tiedEmbeddings: true,
};

async function gradientOf(batches: readonly TrainingBatch[]): Promise<Gradient> {
  await using backend = await createWasmBackend({ threads: 1 });
  await using policy = createPolicy({ ...shape, vocabularySize }, backend, 7);
  const denominator = sumOfWeights(batches.map(({ terms }) => terms.weights));
  let rows = 0;
  for (const { temperature, terms, trie } of batches) {
    const pass = await policy.forward(trie, terms, { temperature, keepForBackward: true });
    rows += pass.rows;
    await pass.backward(terms.advantages.map((advantage) => -advantage / denominator));
  }
  return { rows, values: await policy.readGradients() };
}

const largest = (values: Float32Array): number =>
  values.reduce((best, value) => Math.max(best, Math.abs(value)), 0);

test("the trie of a captured group computes each unique token once, with the gradient of the sequences", async () => {
  const together = await gradientOf([buildTrainingBatch(group, { temperature: 1, advantages })]);
  const apart = await gradientOf(
    group.members.map((member, i) =>
      buildTrainingBatch(
        { ...group, members: [member] },
        { temperature: 1, advantages: [advantages[i] ?? 0] },
      ),
    ),
  );
  const { total, unique } = countUniqueTokens();
  process.stdout.write(`rows ${together.rows} of ${total} tokens in ${size} sequences\n`);
  expect(together.rows).toBe(unique);
  expect(apart.rows).toBe(total);
  expect(together.rows).toBeLessThan(total / 2);
  let worst = 0;
  for (const [name, values] of together.values) {
    const other = apart.values.get(name) ?? new Float32Array(values.length);
    const scale = largest(other);
    expect(scale, name).toBeGreaterThan(0);
    const difference = largest(values.map((value, i) => value - (other[i] ?? 0)));
    worst = Math.max(worst, difference / scale);
  }
  process.stdout.write(`largest relative difference of a gradient ${worst.toExponential(1)}\n`);
  expect(worst).toBeLessThan(1e-5);
});
