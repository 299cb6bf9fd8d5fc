export {
  type BootstrapOptions,
  bootstrapMean,
  type Interval,
  pairedBootstrap,
} from "./bootstrap.js";
export { passAtK } from "./pass-at-k.js";
export {
  runSuite,
  type SuiteOptions,
  type SuiteResult,
  suitePassAtK,
  type TaskResult,
} from "./suite.js";
