/**
 * Wilson's score interval of a proportion: unlike a bootstrap it keeps a width at 0 and at 1.
 */
import { GimbalError } from "@gimbal-rl/core";

/** 0.975 quantile of the standard normal distribution: a 95 % interval. */
const z = 1.959963984540054;

/**
 * The 95 % interval (Wilson 1927) of `successes` in `count` independent trials.
 * @throws {GimbalError} `shape-mismatch` unless 0 <= successes <= count and count >= 1.
 */
export function wilsonInterval(
  successes: number,
  count: number,
): { readonly low: number; readonly high: number } {
  if (!(count >= 1 && successes >= 0 && successes <= count)) {
    throw new GimbalError("shape-mismatch", `${successes} of ${count} is no proportion.`);
  }
  const share = successes / count;
  const scale = 1 + z ** 2 / count;
  const centre = (share + z ** 2 / (2 * count)) / scale;
  const half = (z * Math.sqrt((share * (1 - share)) / count + z ** 2 / (4 * count ** 2))) / scale;
  return { low: Math.max(0, centre - half), high: Math.min(1, centre + half) };
}
