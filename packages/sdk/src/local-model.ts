/**
 * A model folder as a renderer and a running engine.
 */
import { statSync } from "node:fs";
import { GimbalError } from "@gimbal-rl/core";
import { createLocalEngine, type LocalEngine } from "@gimbal-rl/engine";
import type { Renderer } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";

/** A loaded model; disposing it stops the sampler. */
export interface LocalModel {
  readonly renderer: Renderer;
  readonly engine: LocalEngine;
  [Symbol.asyncDispose](): Promise<void>;
}

/** How a model is opened. */
export interface OpenLocalModelOptions {
  /** Sampler threads. Default 1. */
  readonly threads?: number;
  /** Name on the wire. Default: the folder's name. */
  readonly model?: string;
}

/**
 * Opens a Hugging Face model folder: tokenizer and template first (quick, and wrong folders show there), then the
 * weights.
 * @throws {GimbalError} `model-invalid`, `template-unsupported`, `engine-failed`.
 */
export async function openLocalModel(
  modelDir: string,
  options: OpenLocalModelOptions = {},
): Promise<LocalModel> {
  if (statSync(modelDir, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new GimbalError(
      "model-invalid",
      `${modelDir} is not a folder. Give a Hugging Face model folder (config.json, model.safetensors, tokenizer.json).`,
    );
  }
  const renderer = await loadRendererFromFolder(modelDir);
  const engine = await createLocalEngine({ modelDir, ...options });
  return { renderer, engine, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
}
