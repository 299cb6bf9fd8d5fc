/**
 * Supervised loss: the negative log-probability of the demonstrated tokens.
 *
 * Shapes: N loss terms; natural logs.
 */
import type { LossResult } from "./policy-loss.js";
import { assertDenominator, assertSameLength } from "./shapes.js";

/** One micro-batch of supervised terms. Arrays have shape [N]. */
export interface SftLossInput {
  readonly logprobs: ArrayLike<number>;
  readonly weights: ArrayLike<number>;
  /** Sum of the weights over the global batch. */
  readonly denominator: number;
}

/**
 * `-sum(weight * logprob) / denominator` (PivotRL 2603.21383 section 2, L_SFT; token-mean).
 *
 * @throws {GimbalError} `shape-mismatch`.
 * @example
 * sftLoss({ logprobs: [-1, -3], weights: [1, 1], denominator: 2 }).loss; // 2
 */
export function sftLoss({ denominator, logprobs, weights }: SftLossInput): LossResult {
  assertSameLength({ logprobs, weights });
  assertDenominator(denominator);
  const gradLogprobs = new Float32Array(logprobs.length);
  let loss = 0;
  for (let i = 0; i < logprobs.length; i += 1) {
    const scale = weights[i] / denominator;
    loss -= scale * logprobs[i];
    gradLogprobs[i] = -scale;
  }
  return { loss, gradLogprobs };
}
