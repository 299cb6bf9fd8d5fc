export type {
  AdamWOptions,
  AttentionPlan,
  AttentionShape,
  Backend,
  BackendInfo,
  IntTensor,
  KeyValueCache,
  Tensor,
} from "./backend.js";
export type {
  DecodablePolicy,
  ForwardPass,
  ModelConfig,
  TrainablePolicy,
  UpdateOptions,
} from "./policy.js";
export { createReferenceBackend } from "./reference/reference-backend.js";
