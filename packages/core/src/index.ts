export type {
  AskedSampling,
  CallIssue,
  CapturedCall,
  DialectId,
  PolicyRun,
  TapeLink,
  VolatileReplacement,
} from "./call.js";
export { type Clock, systemClock, systemTimerClock, type TimerClock } from "./clock.js";
export type {
  AssistantMessage,
  Conversation,
  FinishReason,
  ImagePart,
  Message,
  ReasoningPart,
  SystemMessage,
  TextPart,
  ToolCallPart,
  ToolDefinition,
  ToolMessage,
  TurnEvent,
  Usage,
  UserMessage,
} from "./conversation.js";
export type {
  CaptureMode,
  Engine,
  EngineInfo,
  GenerateEndEvent,
  GenerateEvent,
  GenerateRequest,
  SamplingParameters,
  TokensEvent,
  TrainableEngine,
} from "./engine.js";
export {
  attributeError,
  type ErrorBoundary,
  type ErrorCode,
  GimbalError,
  type GimbalErrorOptions,
  isRetryable,
  throwIfAborted,
} from "./errors.js";
export type { Harness, HarnessLaunch, HarnessOutcome, HarnessRunSpec } from "./harness.js";
export {
  type AttemptId,
  asId,
  type BlobId,
  type CallId,
  type GroupId,
  type PolicyVersion,
  type SessionId,
  type TaskId,
} from "./ids.js";
export {
  type JsonArray,
  type JsonLiteral,
  type JsonNode,
  type JsonNumber,
  type JsonObject,
  type JsonRange,
  type JsonString,
  jsonMember,
  parseJsonText,
  pythonFloatText,
  pythonNumberText,
  uniqueEntries,
} from "./json-text.js";
export { parseTask } from "./parse-task.js";
export { createRandom, hashToSeed, type Random, shuffled } from "./random.js";
export type {
  ReadOnlyMount,
  Sandbox,
  SandboxCommand,
  SandboxExit,
  SandboxInstance,
  SandboxLevel,
  SandboxSpec,
  WorkspaceDiff,
} from "./sandbox.js";
export type { Store, StoredEvent } from "./store.js";
export type {
  Attempt,
  Budgets,
  Evidence,
  FailureClass,
  Task,
  Verdict,
  VerifierSpec,
} from "./task.js";
export type {
  Branch,
  FidelityReport,
  GroupMember,
  LeftOut,
  LossTerms,
  Segment,
  TokenTrie,
  TrainingBatch,
  Trajectory,
  TrajectoryGroup,
} from "./training.js";
export type { Verifier, VerifyInput } from "./verifier.js";
