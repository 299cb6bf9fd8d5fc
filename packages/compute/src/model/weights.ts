/**
 * Checked loading of weights and optimiser state from tensor sources.
 *
 * Law: names and shapes must be exactly those of the config; an unexpected tensor would change the model and is
 * refused; values must be finite.
 */
import type { ModelConfig } from "../policy.js";
import { modelInvalid } from "./config.js";
import type { Parameter } from "./parameters.js";
import type { TensorSource } from "./safetensors.js";

/** Names of the two AdamW moments of a parameter in `optimizer.safetensors`. */
export function momentNames(name: string): { readonly first: string; readonly second: string } {
  return { first: `${name}.first_moment`, second: `${name}.second_moment` };
}

/** @throws {GimbalError} `model-invalid` when two configs do not describe the same forward pass. */
export function expectSameModel(ours: ModelConfig, theirs: ModelConfig, label: string): void {
  for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)]) as Set<
    keyof ModelConfig
  >) {
    const [a, b] = [JSON.stringify(ours[key]), JSON.stringify(theirs[key])];
    if (a !== b) {
      throw modelInvalid(label, `found ${key} = ${b}; expected ${a}. Load it as a new policy.`);
    }
  }
}

function expectShape(source: TensorSource, name: string, shape: readonly number[]): void {
  const found = source.shapes.get(name);
  if (found === undefined)
    throw modelInvalid(source.label, `tensor ${name} is missing; the folder is incomplete.`);
  if (found.length !== shape.length || found.some((size, i) => size !== shape[i])) {
    throw modelInvalid(
      source.label,
      `tensor ${name} has shape [${found.join(", ")}], expected [${shape.join(", ")}] by config.json.`,
    );
  }
}

/** @throws {GimbalError} `model-invalid` when tensors are missing, unexpected or of another shape. */
export function expectTensors(
  source: TensorSource,
  parameters: readonly Parameter[],
  config: ModelConfig,
): void {
  const known = new Set<string>();
  for (const { spec } of parameters) {
    expectShape(source, spec.name, spec.shape);
    known.add(spec.name);
  }
  for (const name of source.shapes.keys()) {
    // Tied checkpoints may repeat the embedding as lm_head; old Llama ones store the rotary frequencies.
    const harmless =
      (config.tiedEmbeddings && name === "lm_head.weight") || name.endsWith("rotary_emb.inv_freq");
    if (!known.has(name) && !harmless)
      throw modelInvalid(source.label, `tensor ${name} is not part of a ${config.architecture}.`);
  }
}

async function readFinite(source: TensorSource, name: string): Promise<Float32Array> {
  const values = await source.read(name);
  for (const value of values) {
    if (!Number.isFinite(value))
      throw modelInvalid(source.label, `tensor ${name} holds a non-finite number.`);
  }
  return values;
}

/** Reads the weights one at a time, in parameter order. @throws {GimbalError} `model-invalid`. */
export async function* readWeightsInOrder(
  source: TensorSource,
  parameters: readonly Parameter[],
): AsyncGenerator<readonly [Parameter, Float32Array], void, undefined> {
  for (const parameter of parameters)
    yield [parameter, await readFinite(source, parameter.spec.name)];
}

/** AdamW state as stored. */
export interface LoadedOptimiser {
  readonly step: number;
  readonly moments: readonly { readonly first: Float32Array; readonly second: Float32Array }[];
}

/**
 * Reads `optimizer.safetensors`.
 * @param weights - the weights it belongs to; both carry the step they were saved at.
 * @throws {GimbalError} `model-invalid`, also when the steps differ (a save was cut between two files).
 */
export async function loadOptimiser(
  source: TensorSource,
  weights: TensorSource,
  parameters: readonly Parameter[],
): Promise<LoadedOptimiser> {
  const step = Number(source.metadata.step);
  if (!Number.isSafeInteger(step) || step < 0)
    throw modelInvalid(source.label, "found no step count in its metadata.");
  const weightsStep = weights.metadata.step;
  if (weightsStep !== undefined && weightsStep !== String(step)) {
    throw modelInvalid(
      source.label,
      `found step ${step}, but the weights are of step ${weightsStep}; use an earlier checkpoint.`,
    );
  }
  const moments: { readonly first: Float32Array; readonly second: Float32Array }[] = [];
  for (const { spec } of parameters) {
    const names = momentNames(spec.name);
    expectShape(source, names.first, spec.shape);
    expectShape(source, names.second, spec.shape);
    moments.push({
      first: await readFinite(source, names.first),
      second: await readFinite(source, names.second),
    });
  }
  return { step, moments };
}
