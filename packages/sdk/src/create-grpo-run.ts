/**
 * Makes the folder of a GRPO run over any tasks.
 */
import { createWasmBackend } from "@gimbal-rl/compute";
import type { SandboxLevel } from "@gimbal-rl/core";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { defaultRunConfig, type RunConfig, type RunTasks } from "@gimbal-rl/run";
import { backendName } from "./backend-name.js";
import { fingerprintWeights } from "./model-fingerprint.js";
import { modelNameOf } from "./model-name.js";
import { createRunFolder, type RunManifest } from "./run-manifest.js";

/** Settings of a run that differ from {@link defaultRunConfig}. */
export type RunSettings = Partial<Omit<RunConfig, "format" | "facts" | "seed">>;

/** Options of {@link createGrpoRun}. */
export interface CreateGrpoRunOptions {
  readonly runDir: string;
  readonly seed: number;
  /** `evaluation` is taken from the tasks. */
  readonly settings: RunSettings;
  /** Name of the tasks' suite, for the record. */
  readonly suite: string;
  /** What is trained on, and what is evaluated before and after; a step takes `groupsPerStep` of `train`. */
  readonly tasks: RunTasks;
  /** Hugging Face folder of the policy to start from. */
  readonly modelDir: string;
  readonly harness: RunManifest["harness"];
  readonly sandboxLevel: SandboxLevel;
  /** Trainer threads. */
  readonly threads: number;
}

/**
 * Makes the folder of a run; `continueGrpoRun` then runs it.
 * @throws {GimbalError} `config-invalid`, `store-unwritable`, `model-invalid`.
 */
export async function createGrpoRun(options: CreateGrpoRunOptions): Promise<RunConfig> {
  const { harness, modelDir, runDir, sandboxLevel, seed, settings, suite, tasks, threads } =
    options;
  const renderer = await loadRendererFromFolder(modelDir);
  await using backend = await createWasmBackend({ threads: 1 });
  const config: RunConfig = {
    ...defaultRunConfig,
    ...settings,
    seed,
    evaluation: {
      heldoutTasks: tasks.heldout.length,
      heldoutFamilyTasks: tasks.heldoutFamily.length,
    },
    facts: {
      suite,
      node: process.version,
      backend: backendName(backend.info),
      tokenizer: renderer.fingerprint.tokenizer,
      template: renderer.fingerprint.template,
      weights: await fingerprintWeights(modelDir),
    },
  };
  const manifest: RunManifest = {
    ...{ format: 1, config, harness, sandboxLevel, threads, modelDir },
    model: modelNameOf(modelDir),
  };
  await createRunFolder(runDir, manifest, tasks);
  return config;
}
