/**
 * Group-relative advantages: how good an attempt is against the other attempts at its task.
 *
 * Shapes: G = attempts of one group. Rewards are unitless scores. All tokens of an attempt share its advantage.
 */

/** How rewards become advantages inside one group. */
export interface AdvantageOptions {
  /** `std` divides by the deviation plus `epsilon` (GRPO); `none` keeps the reward scale (Dr. GRPO). */
  readonly scale: "none" | "std";
  /** `population` divides the squares by G (2402.03300, PivotRL Eq. 4); `sample` by G - 1 (TRL, verl). */
  readonly deviation: "population" | "sample";
  /** Added to the deviation, in reward units. */
  readonly epsilon: number;
}

/** The setting of the GRPO paper. */
export const grpoAdvantages: AdvantageOptions = {
  scale: "std",
  deviation: "population",
  epsilon: 1e-6,
};

/**
 * GRPO advantages, `(r_i - mean(r)) / (std(r) + epsilon)` (DeepSeekMath, 2402.03300, section 4.1.2, outcome
 * supervision); with scale `none`, `r_i - mean(r)` (Dr. GRPO, 2503.20783).
 *
 * An attempt that was not scored (null) stays null and does not move the mean. A group whose scored rewards are all
 * equal yields exact zeros: it carries no gradient, which differs from one that was never scored.
 *
 * @param rewardsG - Rewards, shape [G]; null = not scored.
 * @returns Advantages, shape [G]; those that are not null sum to zero up to rounding.
 * @example
 * groupAdvantages([1, 0, 0, 0]); // [1.732, -0.577, -0.577, -0.577]
 */
export function groupAdvantages(
  rewardsG: readonly (number | null)[],
  options: AdvantageOptions = grpoAdvantages,
): (number | null)[] {
  const scored = rewardsG.filter((reward) => reward !== null);
  const count = scored.length;
  if (scored.every((reward) => reward === scored[0])) {
    return rewardsG.map((reward) => (reward === null ? null : 0));
  }
  const mean = scored.reduce((sum, reward) => sum + reward, 0) / count;
  const squares = scored.reduce((sum, reward) => sum + (reward - mean) ** 2, 0);
  const degrees = options.deviation === "population" ? count : count - 1;
  const divisor = options.scale === "none" ? 1 : Math.sqrt(squares / degrees) + options.epsilon;
  return rewardsG.map((reward) => (reward === null ? null : (reward - mean) / divisor));
}
