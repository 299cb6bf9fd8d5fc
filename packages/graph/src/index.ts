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
