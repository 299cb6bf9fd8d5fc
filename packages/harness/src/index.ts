/** The Harness contract's runner, and `defineHarness` for a user's own. */
export {
  defineHarness,
  type HarnessDefinition,
  readPlainOutcome,
  standardEnvironment,
} from "./define-harness.js";
export { createLineSplitter, type LineSplitter } from "./line-splitter.js";
export {
  classifyRun,
  type HarnessEvent,
  type HarnessRun,
  type HarnessTaskSpec,
  type RunHarnessOptions,
  runHarness,
} from "./run-harness.js";
