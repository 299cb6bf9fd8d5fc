/**
 * Loads a renderer from a Hugging Face model folder. The only file of this package that touches the disk.
 */
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { GimbalError } from "@gimbal-rl/core";
import { loadRenderer, type RendererSource } from "./chat-renderer.js";
import type { Renderer } from "./renderer.js";

async function readOptional(path: string): Promise<string | undefined> {
  try {
    // Reading a named pipe would wait for ever, and not even a signal would end the process.
    if (!(await stat(path)).isFile()) {
      throw new GimbalError(
        "model-invalid",
        `${path} is not a plain file; put the file itself there.`,
      );
    }
    return await readFile(path, "utf8");
  } catch (error) {
    if (GimbalError.is(error)) throw error;
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new GimbalError("model-invalid", `${path} cannot be read (${code ?? String(error)}).`, {
      cause: error,
    });
  }
}

/**
 * Reads `tokenizer.json`, `tokenizer_config.json`, `chat_template.jinja` and `generation_config.json` (the last three if
 * present) and makes a renderer.
 * @throws {GimbalError} `model-invalid` when the folder is not a model folder; `template-unsupported`.
 * @example
 * const renderer = await loadRendererFromFolder("models/Qwen3-0.6B");
 */
export async function loadRendererFromFolder(
  dir: string,
  options: Pick<RendererSource, "templateOptions" | "id"> = {},
): Promise<Renderer> {
  const [tokenizerJson, tokenizerConfigJson, chatTemplate, generationConfigJson] =
    await Promise.all(
      [
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "generation_config.json",
      ].map((name) => readOptional(join(dir, name))),
    );
  if (tokenizerJson === undefined) {
    throw new GimbalError(
      "model-invalid",
      `${dir} is not a model folder: it has no tokenizer.json. Give the folder that holds tokenizer.json, config.json and model.safetensors.`,
    );
  }
  try {
    return loadRenderer({
      ...options,
      tokenizerJson,
      ...(tokenizerConfigJson === undefined ? {} : { tokenizerConfigJson }),
      ...(chatTemplate === undefined ? {} : { chatTemplate }),
      ...(generationConfigJson === undefined ? {} : { generationConfigJson }),
    });
  } catch (error) {
    if (!GimbalError.is(error)) throw error;
    throw new GimbalError(error.code, `${dir}: ${error.message}`, {
      cause: error,
      details: error.details,
    });
  }
}
