/**
 * Learning-rate schedules: pure functions of the step, so that a resumed run needs no state for them.
 */
import { GimbalError } from "@gimbal-rl/core";

/** Warm-up, then constant, cosine or linear. */
export interface LearningRateSchedule {
  readonly kind: "constant" | "cosine" | "linear";
  /** Learning rate after the warm-up. */
  readonly peak: number;
  /** Steps of linear warm-up; step 1 has peak / (warmupSteps + 1). Default 0. */
  readonly warmupSteps?: number;
  /** Last step of the decay; needed by cosine and linear. */
  readonly totalSteps?: number;
  /** The decay ends at this share of the peak. Default 0. */
  readonly finalFraction?: number;
}

/**
 * Learning rate of a step, counted from 1.
 * @throws {GimbalError} `config-invalid` when a decay has no `totalSteps`.
 * @example
 * learningRateAt({ kind: "cosine", peak: 1e-3, warmupSteps: 10, totalSteps: 100 }, 100); // 0
 */
export function learningRateAt(schedule: LearningRateSchedule, step: number): number {
  const { finalFraction = 0, kind, peak, totalSteps, warmupSteps = 0 } = schedule;
  if (step <= warmupSteps) return (peak * step) / (warmupSteps + 1);
  if (kind === "constant") return peak;
  if (totalSteps === undefined) {
    throw new GimbalError(
      "config-invalid",
      `A ${kind} schedule needs totalSteps; found none. Set it, or use kind "constant".`,
    );
  }
  const span = Math.max(1, totalSteps - warmupSteps);
  const progress = Math.min(1, (step - warmupSteps) / span);
  const share = kind === "cosine" ? (1 + Math.cos(Math.PI * progress)) / 2 : 1 - progress;
  return peak * (finalFraction + (1 - finalFraction) * share);
}
