/**
 * pass@k: the chance that at least one of k samples succeeds.
 */
import { GimbalError } from "@gimbal-rl/core";

/**
 * Unbiased estimate for one task from n samples of which c succeeded:
 * pass@k = 1 - C(n - c, k) / C(n, k) (Chen et al., 2107.03374, equation 1), as a product that does not overflow.
 *
 * @param samples - n, at least k.
 * @param successes - c, in 0..n.
 * @returns A probability in [0, 1].
 * @throws {GimbalError} `shape-mismatch` when k > n, or c is not in 0..n.
 * @example
 * passAtK(5, 2, 1); // 0.4
 */
export function passAtK(samples: number, successes: number, k: number): number {
  const whole = [samples, successes, k].every((value) => Number.isInteger(value));
  if (!whole || k < 1 || k > samples || successes < 0 || successes > samples) {
    throw new GimbalError(
      "shape-mismatch",
      `pass@k needs whole numbers with 1 <= k <= n and 0 <= c <= n, got n=${samples}, c=${successes}, k=${k}.`,
    );
  }
  if (samples - successes < k) return 1;
  let failing = 1;
  for (let i = samples - successes + 1; i <= samples; i += 1) failing *= 1 - k / i;
  return 1 - failing;
}
