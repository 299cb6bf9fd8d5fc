export {
  type AttemptStack,
  type AttemptStackOptions,
  createAttemptStack,
} from "./attempt-stack.js";
export { type CreateGrpoRunOptions, createGrpoRun, type RunSettings } from "./create-grpo-run.js";
export {
  type CreateDeskRunOptions,
  createDeskRun,
  demoSettings,
  quickDemoSettings,
  tinyPolicySettings,
} from "./desk-run.js";
export { type ContinueGrpoRunOptions, continueGrpoRun } from "./grpo-run.js";
export {
  createInferenceServer,
  type InferenceLimits,
  type InferenceServer,
  type InferenceServerOptions,
} from "./inference-server.js";
export {
  createLocalGateway,
  type LocalGateway,
  type LocalGatewayOptions,
} from "./local-gateway.js";
export { type LocalModel, type OpenLocalModelOptions, openLocalModel } from "./local-model.js";
export { modelNameOf } from "./model-name.js";
export { type ReplayOptions, type ReplayResult, replayGrpoRun } from "./replay-run.js";
export { createRunFolder, isRunFolder, type RunManifest, readRunFolder } from "./run-manifest.js";
export { stablePathRules } from "./stable-paths.js";
export { type RunTasksOptions, runTasks } from "./suite-run.js";
