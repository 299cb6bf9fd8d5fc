/**
 * The clipped policy loss per token, with its gradient by hand.
 *
 * Shapes: N loss terms. Log-probabilities are natural logs (nats) at the sampling temperature. Sums run in index order
 * in f64; gradients are f32. Law: losses and gradients of micro-batches that share one denominator add up to those of
 * the whole batch.
 */
import { type PolicyMetrics, policyMetrics } from "./policy-metrics.js";
import { clippedTerm, klTerm, type PolicyTermArrays } from "./policy-terms.js";
import { assertDenominator, assertSameLength } from "./shapes.js";

/** One micro-batch. */
export interface PolicyLossInput extends PolicyTermArrays {
  /** Sum of the weights over the *global* batch (token-mean, DAPO 2503.14476 Eq. 8), not of this micro-batch. */
  readonly denominator: number;
}

/** A loss and its derivative. */
export interface LossResult {
  /** To be minimised. */
  readonly loss: number;
  /** d(loss)/d(logprob), shape [N]. */
  readonly gradLogprobs: Float32Array;
}

/** What {@link policyLoss} returns. */
export interface PolicyLossResult extends LossResult {
  /** Of this micro-batch alone; use {@link policyMetrics} over all terms for a whole step. */
  readonly metrics: PolicyMetrics;
}

/**
 * Sum over the terms of `weight * (clipped policy term + beta * k3) / denominator`.
 *
 * @throws {GimbalError} `shape-mismatch` when lengths differ, the denominator is not above 0, or a reference is missing.
 * @example
 * const { loss, gradLogprobs } = policyLoss({ logprobs, behaviourLogprobs, advantages, weights,
 *   denominator: sumOfWeights([weights]), options: grpo.policy });
 */
export function policyLoss(input: PolicyLossInput): PolicyLossResult {
  const { advantages, behaviourLogprobs, denominator, logprobs, options, weights } = input;
  const { klCoefficient } = options;
  const referenceLogprobs = input.referenceLogprobs ?? (klCoefficient === 0 ? logprobs : []);
  assertSameLength({ logprobs, behaviourLogprobs, referenceLogprobs, advantages, weights });
  assertDenominator(denominator);
  const gradLogprobs = new Float32Array(logprobs.length);
  let loss = 0;
  for (let i = 0; i < logprobs.length; i += 1) {
    const policy = clippedTerm(logprobs[i] - behaviourLogprobs[i], advantages[i], options);
    let value = policy.loss;
    let gradient = policy.gradient;
    if (klCoefficient !== 0) {
      const kl = klTerm(logprobs[i], referenceLogprobs[i]);
      value += klCoefficient * kl.value;
      gradient += klCoefficient * kl.gradient;
    }
    const scale = weights[i] / denominator;
    loss += scale * value;
    gradLogprobs[i] = scale * gradient;
  }
  return { loss, gradLogprobs, metrics: policyMetrics(input) };
}

/**
 * The token-mean denominator: the sum of the weights over all micro-batches of one update (DAPO 2503.14476, Eq. 8).
 * @example
 * const denominator = sumOfWeights(batches.map((batch) => batch.terms.weights));
 */
export function sumOfWeights(weights: readonly ArrayLike<number>[]): number {
  let sum = 0;
  for (const part of weights) for (let i = 0; i < part.length; i += 1) sum += part[i];
  return sum;
}
