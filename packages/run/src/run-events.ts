/**
 * What a run tells while it goes on; the command line turns it into bars and lines.
 */
import type { AttemptRecord } from "@gimbal-rl/rollout";
import type { StepReport } from "./step-report.js";

/** Parts of a run; the two evaluations are labelled so in attempt ids too. */
export type RunPhase = "eval-before" | "train" | "eval-after";

/** Events of a run, in order. Handlers must not throw. */
export type RunEvent =
  | { readonly type: "phase-start"; readonly phase: RunPhase; readonly total: number }
  | {
      readonly type: "attempt-end";
      readonly phase: RunPhase;
      readonly record: AttemptRecord;
      /** Attempts ended in this phase. */
      readonly done: number;
      readonly total: number;
    }
  | { readonly type: "attempt-discarded"; readonly phase: RunPhase; readonly reason: string }
  | { readonly type: "step-end"; readonly report: StepReport }
  | { readonly type: "phase-end"; readonly phase: RunPhase; readonly seconds: number };
