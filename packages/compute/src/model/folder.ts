/**
 * Saves and opens a policy as a Hugging Face model folder. Uses `node:fs` through `files.ts`.
 */
import { join } from "node:path";
import type { Backend, Tensor } from "../backend.js";
import { openSafetensors, openWeights, readConfigText, writeFileAtomically } from "./files.js";
import type { Parameter } from "./parameters.js";
import { encodeSafetensors, type TensorSource, type TensorToWrite } from "./safetensors.js";
import { momentNames } from "./weights.js";

/** An open model folder; `optimizer` is null when absent or not asked for. */
export interface ModelFolder {
  readonly configText: string;
  readonly weights: TensorSource;
  readonly optimizer: TensorSource | null;
  close(): Promise<void>;
}

/** Opens a folder. @throws {GimbalError} `model-invalid`. */
export async function openFolder(
  dir: string,
  options: { readonly optimizer: boolean },
): Promise<ModelFolder> {
  const configText = await readConfigText(dir);
  const weights = await openWeights(dir);
  let optimizer: TensorSource | null = null;
  try {
    if (options.optimizer) optimizer = await openSafetensors(join(dir, "optimizer.safetensors"));
  } catch (error) {
    await weights.close();
    throw error;
  }
  return {
    configText,
    weights,
    optimizer,
    async close() {
      await weights.close();
      await optimizer?.close();
    },
  };
}

/** What is saved. */
export interface FolderContent {
  readonly backend: Backend;
  readonly configText: string;
  readonly parameters: readonly Parameter[];
  readonly step: number;
  readonly format: "F32" | "BF16";
  readonly optimizer: boolean;
}

/** The config's text with the number format of the weights beside it. */
function withFormat(configText: string, format: "F32" | "BF16"): string {
  const json = JSON.parse(configText) as Record<string, unknown>;
  const key = "dtype" in json ? "dtype" : "torch_dtype";
  return `${JSON.stringify({ ...json, [key]: format === "F32" ? "float32" : "bfloat16" }, null, 2)}\n`;
}

/** Writes the folder; the weights come last, each file atomically. Both weight files carry the step. */
export async function saveFolder(dir: string, content: FolderContent): Promise<void> {
  const { backend, parameters, step, format } = content;
  const metadata = { step: String(step) };
  const entry = (name: string, shape: readonly number[], tensor: Tensor | null): TensorToWrite => ({
    name,
    shape,
    read: () =>
      tensor === null
        ? Promise.resolve(new Float32Array(shape.reduce((product, n) => product * n, 1)))
        : backend.read(tensor),
  });
  await writeFileAtomically(dir, "config.json", [
    new TextEncoder().encode(withFormat(content.configText, format)),
  ]);
  if (content.optimizer) {
    const moments = parameters.flatMap(({ spec, firstMoment, secondMoment }) => {
      const names = momentNames(spec.name);
      return [
        entry(names.first, spec.shape, firstMoment),
        entry(names.second, spec.shape, secondMoment),
      ];
    });
    await writeFileAtomically(
      dir,
      "optimizer.safetensors",
      encodeSafetensors(moments, "F32", metadata),
    );
  }
  const weights = parameters.map(({ spec, weight }) => entry(spec.name, spec.shape, weight));
  await writeFileAtomically(dir, "model.safetensors", encodeSafetensors(weights, format, metadata));
}
