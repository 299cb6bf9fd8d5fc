/**
 * What tells one set of weights from another: a hash over the weight files of a model folder.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { attributeError } from "@gimbal-rl/core";

/**
 * sha256 over names and bytes of the `*.safetensors` files but the optimiser's, as hexadecimal text.
 * @throws {GimbalError} `model-invalid` when the folder cannot be read.
 */
export async function fingerprintWeights(modelDir: string): Promise<string> {
  try {
    const names = await readdir(modelDir);
    const hash = createHash("sha256");
    for (const name of names.filter(isWeightFile).sort()) {
      hash.update(`${name}\0`);
      for await (const chunk of createReadStream(join(modelDir, name))) {
        hash.update(chunk as Uint8Array);
      }
    }
    return hash.digest("hex");
  } catch (error) {
    throw attributeError(
      error,
      "model-invalid",
      "config",
      `${modelDir} cannot be read; give a Hugging Face model folder`,
    );
  }
}

function isWeightFile(name: string): boolean {
  return name.endsWith(".safetensors") && name !== "optimizer.safetensors";
}
