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
export { modelConfigToJson, parseModelConfig } from "./model/config.js";
export {
  type CreatePolicyOptions,
  createPolicy,
  loadPolicy,
  loadPolicyFromBytes,
  type ModelPolicy,
} from "./model/policy.js";
export { readSafetensors, type TensorSource } from "./model/safetensors.js";
export type {
  DecodablePolicy,
  ForwardPass,
  LearningRateScales,
  Llama3RopeScaling,
  ModelConfig,
  TrainablePolicy,
  UpdateOptions,
} from "./policy.js";
export { createReferenceBackend } from "./reference/reference-backend.js";
export { createWasmBackend, type WasmBackendOptions } from "./wasm/wasm-backend.js";
