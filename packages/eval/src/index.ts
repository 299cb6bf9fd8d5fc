export {
  type BootstrapOptions,
  bootstrapMean,
  type Interval,
  pairedBootstrap,
} from "./bootstrap.js";
export { type IntervalEnds, intervalText } from "./interval-text.js";
export { passAtK } from "./pass-at-k.js";
export {
  type ReportData,
  type ReportRow,
  type ReportStep,
  type ReportTurn,
  renderReport,
} from "./report.js";
export {
  type PassAtKInterval,
  runSuite,
  type SuiteOptions,
  type SuiteResult,
  suitePassAtK,
  type TaskResult,
} from "./suite.js";
export { wilsonInterval } from "./wilson.js";
