/**
 * A model folder as a renderer and a running engine, for commands that serve it.
 */
import { statSync } from "node:fs";
import { GimbalError } from "@gimbal-rl/core";
import { createLocalEngine, type LocalEngine } from "@gimbal-rl/engine";
import type { Renderer } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";

/** A loaded model; dispose the engine. */
export interface LocalModel {
  readonly renderer: Renderer;
  readonly engine: LocalEngine;
}

/**
 * Loads tokenizer and template first (quick, and wrong folders show there), then the weights.
 * @param modelDir - Absolute path.
 * @throws {GimbalError} `model-invalid`, `template-unsupported`, `engine-failed`.
 */
export async function openLocalModel(
  modelDir: string,
  options: { readonly threads: number; readonly model?: string },
): Promise<LocalModel> {
  if (statSync(modelDir, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new GimbalError(
      "model-invalid",
      `${modelDir} is not a folder. Give a Hugging Face model folder (config.json, model.safetensors, tokenizer.json) with --model.`,
    );
  }
  const renderer = await loadRendererFromFolder(modelDir);
  const engine = await createLocalEngine({ modelDir, ...options });
  return { renderer, engine };
}

/** Resolves when the user stops the command. */
export function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
