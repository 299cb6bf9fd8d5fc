export { callFromTokens, type TokenCall } from "./call-from-tokens.js";
export { buildCallGraph, type CallGraph, type CallNode, isDelivered } from "./call-graph.js";
export { mergeFidelity } from "./fidelity.js";
export {
  type BatchOptions,
  buildSftBatches,
  buildTrainingBatch,
  buildTrainingBatches,
  type WeightedGroup,
} from "./training-batch.js";
export { type BuildTrajectoryOptions, buildTrajectory } from "./trajectory.js";
export {
  type CallFinding,
  type FindingCode,
  type FindingLevel,
  type ValidateCallOptions,
  validateCall,
} from "./validate-call.js";
