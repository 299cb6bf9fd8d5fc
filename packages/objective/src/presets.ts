/**
 * Named settings from papers. Plain data: spread one to change a value.
 */
import { type AdvantageOptions, grpoAdvantages } from "./advantages.js";
import type { PolicyLossOptions } from "./policy-terms.js";

/** Advantage rule and loss settings that belong together. */
export interface ObjectivePreset {
  readonly name: string;
  readonly advantage: AdvantageOptions;
  readonly policy: PolicyLossOptions;
  /** How token losses become one number. */
  readonly aggregation: "token-mean";
}

/**
 * GRPO (DeepSeekMath, 2402.03300): population deviation, clip 0.2 both ways. Two choices follow today's trainers, not the
 * paper: token-mean over the global batch (DAPO, 2503.14476) and no KL (TRL, verl).
 *
 * @example
 * const gentle = { ...grpo, policy: { ...grpo.policy, klCoefficient: 0.001 } };
 */
export const grpo: ObjectivePreset = {
  name: "grpo",
  advantage: grpoAdvantages,
  policy: { clipLow: 0.2, clipHigh: 0.2, klCoefficient: 0 },
  aggregation: "token-mean",
};
