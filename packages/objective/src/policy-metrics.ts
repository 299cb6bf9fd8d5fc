/**
 * What to watch while a policy is trained: pure numbers over the terms of a whole batch.
 *
 * Shapes: N loss terms. Nothing here feeds the gradient.
 */
import { clampLogRatio, clippedTerm, klTerm, type PolicyTermArrays } from "./policy-terms.js";
import { assertSameLength } from "./shapes.js";

/** Averages are weighted by the terms' weights; all are 0 when there are no terms, the ratios 1. */
export interface PolicyMetrics {
  readonly terms: number;
  /** Share of terms whose gradient the clip removes. */
  readonly clipFraction: number;
  readonly clipLowFraction: number;
  readonly clipHighFraction: number;
  /** KL(behaviour || policy) estimated as the mean of -log rho (k1). */
  readonly approxKlK1: number;
  /** The same as the mean of rho - 1 - log rho (k3); never negative. */
  readonly approxKlK3: number;
  /** k3 of KL(policy || reference); null without a reference. */
  readonly referenceKl: number | null;
  readonly ratioMean: number;
  readonly ratioMax: number;
  /** |policy - behaviour| in nats. Before any update this is the mismatch between trainer and engine. */
  readonly mismatchMean: number;
  readonly mismatchMax: number;
  /** (sum w rho)^2 / (sum w * sum w rho^2), in (0, 1]; 1 = on policy. */
  readonly effectiveSampleSize: number;
  /** Mean of -log-probability of the sampled tokens: an unbiased entropy estimate while on policy. */
  readonly entropy: number;
  readonly advantageMean: number;
  readonly advantageAbsMean: number;
}

/**
 * Computes the metrics of a batch.
 * @throws {GimbalError} `shape-mismatch`.
 */
export function policyMetrics(input: PolicyTermArrays): PolicyMetrics {
  const { advantages, behaviourLogprobs, logprobs, options, referenceLogprobs, weights } = input;
  assertSameLength({
    logprobs,
    behaviourLogprobs,
    referenceLogprobs: referenceLogprobs ?? logprobs,
    advantages,
    weights,
  });
  const sum = { clipLow: 0, clipHigh: 0, k1: 0, k3: 0, kl: 0, ratio: 0, square: 0, weight: 0 };
  const more = { mismatch: 0, entropy: 0, advantage: 0, magnitude: 0 };
  let ratioMax = logprobs.length === 0 ? 1 : 0;
  let mismatchMax = 0;
  for (let i = 0; i < logprobs.length; i += 1) {
    const weight = weights[i];
    const difference = logprobs[i] - behaviourLogprobs[i];
    const logRatio = clampLogRatio(difference);
    const ratio = Math.exp(logRatio);
    if (clippedTerm(difference, advantages[i], options).clipped) {
      if (ratio > 1) sum.clipHigh += weight;
      else sum.clipLow += weight;
    }
    sum.k1 -= weight * logRatio;
    sum.k3 += weight * (Math.expm1(logRatio) - logRatio);
    if (referenceLogprobs !== undefined) {
      sum.kl += weight * klTerm(logprobs[i], referenceLogprobs[i]).value;
    }
    sum.ratio += weight * ratio;
    sum.square += weight * ratio * ratio;
    sum.weight += weight;
    more.mismatch += weight * Math.abs(difference);
    more.entropy -= weight * logprobs[i];
    more.advantage += weight * advantages[i];
    more.magnitude += weight * Math.abs(advantages[i]);
    ratioMax = Math.max(ratioMax, ratio);
    mismatchMax = Math.max(mismatchMax, Math.abs(difference));
  }
  const mean = (total: number): number => (sum.weight === 0 ? 0 : total / sum.weight);
  const empty = sum.weight === 0;
  return {
    terms: logprobs.length,
    clipFraction: mean(sum.clipLow + sum.clipHigh),
    clipLowFraction: mean(sum.clipLow),
    clipHighFraction: mean(sum.clipHigh),
    approxKlK1: mean(sum.k1),
    approxKlK3: mean(sum.k3),
    referenceKl: referenceLogprobs === undefined ? null : mean(sum.kl),
    ratioMean: empty ? 1 : mean(sum.ratio),
    ratioMax,
    mismatchMean: mean(more.mismatch),
    mismatchMax,
    effectiveSampleSize: empty ? 1 : sum.ratio ** 2 / (sum.weight * sum.square),
    entropy: mean(more.entropy),
    advantageMean: mean(more.advantage),
    advantageAbsMean: mean(more.magnitude),
  };
}
