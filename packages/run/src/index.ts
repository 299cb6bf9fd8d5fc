export { measureReferenceKl } from "./reference-kl.js";
export { defaultRunConfig, parseRunConfig, type RunConfig, type RunControl } from "./run-config.js";
export type { RunEvent, RunPhase } from "./run-events.js";
export { buildRunReport } from "./run-report.js";
export {
  type BeforeAfter,
  type RunSummary,
  type SummaryInput,
  summariseRun,
} from "./run-summary.js";
export { createUsageWriter, type RunUsage, readRunUsage } from "./run-usage.js";
export { buildStepBatches, type StepBatches } from "./step-batches.js";
export { phaseOf, planStep, stepLabel, tasksOfStep } from "./step-plan.js";
export { type StepReport, type StepSeconds, toStepReport } from "./step-report.js";
export {
  type AdmissionControl,
  phaseEndKind,
  type RunTasks,
  runTraining,
  stepPlanKind,
  type TrainingRunOptions,
  type TrainingRunResult,
} from "./training-run.js";
