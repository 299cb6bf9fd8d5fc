/**
 * One token's share of the policy loss, and its derivative by the token's log-probability.
 *
 * Log ratios are clamped to +-20, where the gradient stops.
 */

/** Settings of the loss. */
export interface PolicyLossOptions {
  /** The ratio is clipped below at 1 - clipLow. */
  readonly clipLow: number;
  /** The ratio is clipped above at 1 + clipHigh (DAPO's clip-higher uses 0.28). */
  readonly clipHigh: number;
  /** Weight of the k3 KL to the reference (beta); 0 needs no reference. */
  readonly klCoefficient: number;
}

/** The terms of one batch. Every array has shape [N]. */
export interface PolicyTermArrays {
  /** Log-probabilities under the policy being trained. */
  readonly logprobs: ArrayLike<number>;
  /** Log-probabilities recorded when the tokens were sampled. */
  readonly behaviourLogprobs: ArrayLike<number>;
  /** Under the frozen reference; needed when `klCoefficient` is not 0. */
  readonly referenceLogprobs?: ArrayLike<number>;
  readonly advantages: ArrayLike<number>;
  /** Weight of each term in the aggregation. */
  readonly weights: ArrayLike<number>;
  readonly options: PolicyLossOptions;
}

/** e^20: far beyond any useful ratio, and finite in f32 after the products (NeMo-RL and verl clamp alike). */
const logRatioLimit = 20;

/** Clamps a log ratio to +-20. */
export function clampLogRatio(value: number): number {
  return Math.min(logRatioLimit, Math.max(-logRatioLimit, value));
}

/**
 * `-min(rho A, clip(rho, 1 - clipLow, 1 + clipHigh) A)` and its derivative by the log-probability.
 * PPO (1707.06347, Eq. 7), used per token by GRPO (2402.03300, Eq. 3).
 */
export function clippedTerm(
  logRatio: number,
  advantage: number,
  options: Pick<PolicyLossOptions, "clipHigh" | "clipLow">,
): { readonly loss: number; readonly gradient: number; readonly clipped: boolean } {
  const ratio = Math.exp(clampLogRatio(logRatio));
  const bounded = Math.min(1 + options.clipHigh, Math.max(1 - options.clipLow, ratio));
  const free = ratio * advantage;
  const clipped = bounded * advantage < free;
  const flows = !clipped && Math.abs(logRatio) < logRatioLimit;
  return { loss: -(clipped ? bounded * advantage : free), gradient: flows ? -free : 0, clipped };
}

/**
 * Schulman's k3 estimate of KL(policy || reference) on sampled tokens, `e^x - 1 - x` with
 * `x = log ref - log policy` (GRPO 2402.03300, Eq. 4), and its derivative by the policy's log-probability, `1 - e^x`.
 */
export function klTerm(
  logprob: number,
  referenceLogprob: number,
): { readonly value: number; readonly gradient: number } {
  const difference = referenceLogprob - logprob;
  const x = clampLogRatio(difference);
  const gradient = Math.abs(difference) < logRatioLimit ? 1 - Math.exp(x) : 0;
  return { value: Math.expm1(x) - x, gradient };
}
