/**
 * The name of a model on the wire, in run.json and in every captured call.
 */
import { basename, resolve } from "node:path";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";

/**
 * The folder's own name; `gimbal-tiny` for the bundled policy, whose folder is called `model`.
 * @param modelDir - Absolute, or relative to the working directory.
 * @example
 * modelNameOf("./Qwen3-0.6B"); // "Qwen3-0.6B"
 */
export function modelNameOf(modelDir: string): string {
  const path = resolve(modelDir);
  if (path === resolve(tinyModelDir)) return "gimbal-tiny";
  // The root of a file system has no name.
  return basename(path) || "model";
}
