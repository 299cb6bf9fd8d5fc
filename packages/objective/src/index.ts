export { type AdvantageOptions, groupAdvantages, grpoAdvantages } from "./advantages.js";
export {
  type LossResult,
  type PolicyLossInput,
  type PolicyLossResult,
  policyLoss,
  sumOfWeights,
} from "./policy-loss.js";
export { type PolicyMetrics, policyMetrics } from "./policy-metrics.js";
export {
  clippedTerm,
  klTerm,
  type PolicyLossOptions,
  type PolicyTermArrays,
} from "./policy-terms.js";
export { grpo, type ObjectivePreset } from "./presets.js";
export { type SftLossInput, sftLoss } from "./sft-loss.js";
