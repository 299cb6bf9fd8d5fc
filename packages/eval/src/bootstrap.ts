/**
 * Paired bootstrap over tasks: the same task before and after is one observation.
 */
import { createRandom, GimbalError } from "@gimbal-rl/core";

/** A mean with its percentile interval. */
export interface Interval {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

/** Options of {@link bootstrapMean}. */
export interface BootstrapOptions {
  readonly seed: number;
  /** A whole number from 1. Default 10,000. */
  readonly resamples?: number;
  /** Share of the resampled means inside the interval, in (0, 1). Default 0.95. */
  readonly confidence?: number;
}

/**
 * Mean of the values with a percentile bootstrap interval (Efron 1979): resampled with replacement, ends at the
 * (1 - confidence)/2 quantiles.
 *
 * @param values - One per task, at least one.
 * @throws {GimbalError} `shape-mismatch` when empty, `config-invalid` for impossible options.
 */
export function bootstrapMean(values: readonly number[], options: BootstrapOptions): Interval {
  if (values.length === 0) {
    throw new GimbalError("shape-mismatch", "A bootstrap needs at least one value, got none.");
  }
  const { seed, resamples = 10_000, confidence = 0.95 } = options;
  if (!Number.isSafeInteger(resamples) || resamples < 1) {
    throw new GimbalError(
      "config-invalid",
      `A bootstrap needs a whole number of resamples from 1, got ${resamples}.`,
    );
  }
  if (!(confidence > 0 && confidence < 1)) {
    throw new GimbalError(
      "config-invalid",
      `The confidence of an interval is a share in (0, 1), got ${confidence}. 95 % is 0.95.`,
    );
  }
  const random = createRandom(seed);
  const means = new Float64Array(resamples);
  for (let b = 0; b < resamples; b += 1) {
    let sum = 0;
    for (let i = 0; i < values.length; i += 1) sum += values[random.integer(values.length)] ?? 0;
    means[b] = sum / values.length;
  }
  means.sort();
  const at = (quantile: number): number =>
    means[Math.min(resamples - 1, Math.max(0, Math.round(quantile * (resamples - 1))))] ?? 0;
  const tail = (1 - confidence) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return { mean, low: at(tail), high: at(1 - tail) };
}

/**
 * Gain of `after` over `before` on the same tasks, with a paired bootstrap interval.
 *
 * @param before - Score per task.
 * @param after - Score of the same tasks in the same order.
 * @throws {GimbalError} `shape-mismatch` when the lengths differ or are zero, `config-invalid` for impossible options.
 */
export function pairedBootstrap(
  before: readonly number[],
  after: readonly number[],
  options: BootstrapOptions,
): Interval {
  if (before.length !== after.length) {
    throw new GimbalError(
      "shape-mismatch",
      `A paired bootstrap needs the same tasks before and after, got ${before.length} and ${after.length}.`,
    );
  }
  return bootstrapMean(
    after.map((value, i) => value - (before[i] ?? 0)),
    options,
  );
}
