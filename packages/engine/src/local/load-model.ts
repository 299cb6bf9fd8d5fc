/**
 * A model folder on a backend, ready to decode.
 */
import {
  createReferenceBackend,
  createWasmBackend,
  type DecodablePolicy,
  loadPolicy,
  type ModelConfig,
} from "@gimbal-rl/compute";
import type { HostOptions } from "./protocol.js";

/** Bytes of keys and values kept when the caller does not say how many slots. */
const cacheBytes = 512 * 1024 * 1024;

/** A policy with its backend. */
export interface LoadedModel {
  readonly policy: DecodablePolicy;
  readonly slots: number;
  /** @throws {GimbalError} `model-invalid`; the old weights stay. */
  replaceWeights(modelDir: string): Promise<void>;
  dispose(): Promise<void>;
}

/**
 * Loads config and weights from a Hugging Face folder.
 * @throws {GimbalError} `model-invalid`.
 */
export async function loadModel(options: HostOptions): Promise<LoadedModel> {
  const backend =
    options.backend === "wasm"
      ? await createWasmBackend({ threads: options.threads })
      : createReferenceBackend();
  try {
    const policy = await loadPolicy(options.modelDir, backend);
    return {
      policy,
      slots: options.slots ?? defaultSlots(policy.config),
      replaceWeights: (modelDir) => policy.load(modelDir, { optimizer: false }),
      dispose: async () => {
        await policy[Symbol.asyncDispose]();
        await backend[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await backend[Symbol.asyncDispose]();
    throw error;
  }
}

/** As many slots as fit the cache's bytes, from 1024 to 65536. */
function defaultSlots(config: ModelConfig): number {
  const bytesPerSlot = config.layers * 2 * config.keyValueHeads * config.headWidth * 4;
  return Math.max(1024, Math.min(65_536, Math.floor(cacheBytes / bytesPerSlot)));
}
