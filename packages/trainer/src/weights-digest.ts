/**
 * A fingerprint of weights, for comparing runs.
 */
import { createHash } from "node:crypto";
import type { TrainablePolicy } from "@gimbal-rl/compute";

/**
 * `sha256-<hex>` over the parameters' names and f32 bytes, in order of name. Equal exactly when every bit is.
 * @example
 * (await digestWeights(a)) === (await digestWeights(b)); // bit-identical
 */
export async function digestWeights(policy: Pick<TrainablePolicy, "readWeights">): Promise<string> {
  const weights = await policy.readWeights();
  const hash = createHash("sha256");
  for (const name of [...weights.keys()].sort()) {
    const values = weights.get(name) ?? new Float32Array(0);
    hash.update(`${name}\0${values.length}\0`);
    hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  return `sha256-${hash.digest("hex")}`;
}
