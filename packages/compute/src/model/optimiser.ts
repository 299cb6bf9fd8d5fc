/**
 * One AdamW update of all parameters with clipping by the global norm.
 *
 * Law: parameters are visited in a fixed order; weight decay touches matrices, never norm weights; a frozen parameter
 * (scale 0) counts neither in the norm nor in the update, so it cannot shrink the step of the others; a non-finite
 * gradient changes neither weights nor optimiser state, and is cleared.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { Backend } from "../backend.js";
import type { LearningRateScales, UpdateOptions } from "../policy.js";
import { gradientOf, type Parameter, refreshParameter } from "./parameters.js";

/** The multiplier of a parameter's learning rate. */
function scaleOf({ spec }: Parameter, scales: LearningRateScales = {}): number {
  if (spec.name === "model.embed_tokens.weight" || spec.name === "lm_head.weight") {
    return scales.embedding ?? 1;
  }
  if (spec.name === "model.norm.weight") return scales.finalNorm ?? scales.norm ?? 1;
  if (spec.kind === "norm") return scales.norm ?? 1;
  return (spec.name.includes(".self_attn.") ? scales.attention : scales.mlp) ?? 1;
}

/**
 * Updates the weights from their gradients and zeroes those.
 * @param step - 1-based count of this update.
 * @returns the global gradient norm of the parameters that are not frozen, before clipping.
 * @throws {GimbalError} `non-finite`.
 */
export async function applyUpdate(
  backend: Backend,
  parameters: readonly Parameter[],
  step: number,
  options: UpdateOptions,
): Promise<number> {
  const scaled = parameters.map(
    (parameter) => [parameter, scaleOf(parameter, options.learningRateScales)] as const,
  );
  const squares = backend.allocate(1);
  for (const [parameter, scale] of scaled) {
    if (scale !== 0) backend.addSumOfSquares(squares, gradientOf(backend, parameter));
  }
  const norm = Math.sqrt((await backend.read(squares))[0]);
  backend.free(squares);
  if (!Number.isFinite(norm)) {
    for (const parameter of parameters) backend.fill(gradientOf(backend, parameter), 0);
    throw new GimbalError(
      "non-finite",
      `Found a gradient norm of ${norm}; weights are unchanged. Lower the learning rate or resume an earlier checkpoint.`,
      { boundary: "compute" },
    );
  }
  const limit = options.maxGradientNorm ?? Number.POSITIVE_INFINITY;
  for (const [parameter, scale] of scaled) {
    const { spec, weight } = parameter;
    const gradient = gradientOf(backend, parameter);
    if (scale === 0) {
      backend.fill(gradient, 0);
      continue;
    }
    parameter.firstMoment ??= backend.allocate(weight.length);
    parameter.secondMoment ??= backend.allocate(weight.length);
    backend.adamW(weight, gradient, parameter.firstMoment, parameter.secondMoment, {
      learningRate: options.learningRate * scale,
      beta1: options.beta1 ?? 0.9,
      beta2: options.beta2 ?? 0.999,
      epsilon: options.epsilon ?? 1e-8,
      weightDecay: spec.kind === "norm" ? 0 : (options.weightDecay ?? 0),
      step,
      gradientScale: norm > limit ? limit / norm : 1,
    });
    backend.fill(gradient, 0);
    refreshParameter(backend, parameter);
  }
  return norm;
}
