export {
  type AttemptRecord,
  type AttemptSeconds,
  attemptDiscardedKind,
  attemptEndKind,
  type DiscardedTry,
} from "./attempt-record.js";
export {
  type AttemptDependencies,
  type AttemptStage,
  runAttempt,
  type SessionHost,
} from "./attempt-runner.js";
export { type BuiltGroups, buildAttemptTrajectory, buildGroups } from "./build-groups.js";
export { type AttemptClass, type AttemptFacts, classifyAttempt } from "./classify-attempt.js";
export {
  type CollectedGroup,
  type CollectOptions,
  collectGroups,
  loadCalls,
  type PlannedGroup,
  planGroup,
} from "./collect-attempts.js";
export { mapPooled } from "./pool.js";
