/**
 * A small random model on disk, for tests that need real weights.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createPolicy, createReferenceBackend, type ModelConfig } from "@gimbal-rl/compute";

/** Small enough for the reference backend. */
export const smallConfig: ModelConfig = {
  architecture: "qwen3",
  vocabularySize: 61,
  width: 16,
  intermediateWidth: 24,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headWidth: 8,
  normEpsilon: 1e-6,
  ropeTheta: 10_000,
  maxPositions: 512,
  tiedEmbeddings: true,
};

/** The shape of the demo's policy; large enough that the WASM backend uses its threads. */
export const demoSize: Partial<ModelConfig> = {
  vocabularySize: 2048,
  width: 128,
  intermediateWidth: 384,
  layers: 4,
  headWidth: 32,
};

/** A folder that removes itself. */
export interface ModelFolder {
  readonly dir: string;
  remove(): Promise<void>;
}

/** Writes a model with seeded random weights. */
export async function createModelFolder(
  seed: number,
  config: ModelConfig = smallConfig,
): Promise<ModelFolder> {
  const dir = await mkdtemp(join(tmpdir(), "gimbal-model-"));
  const backend = createReferenceBackend();
  const policy = createPolicy(config, backend, seed);
  await policy.save(dir, { optimizer: false });
  await policy[Symbol.asyncDispose]();
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}
