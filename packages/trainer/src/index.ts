export {
  type Checkpoint,
  type CheckpointState,
  findCheckpoints,
  policyVersionOf,
  type Retention,
} from "./checkpoints.js";
export { replaceFile } from "./durable-files.js";
export { readMetrics } from "./metrics-log.js";
export type { RunFolderOptions, TrainerEvent } from "./run-folder.js";
export { type LearningRateSchedule, learningRateAt } from "./schedule.js";
export type { StepRecord } from "./step-record.js";
export {
  type SftStepMetrics,
  sftEvaluate,
  type TrainSftOptions,
  trainSft,
} from "./train-sft.js";
export { type TrainStepMetrics, type TrainStepOptions, trainStep } from "./train-step.js";
export {
  type CreateTrainerOptions,
  createTrainer,
  type OptimizerOptions,
  type Trainer,
} from "./trainer.js";
export { digestWeights } from "./weights-digest.js";
