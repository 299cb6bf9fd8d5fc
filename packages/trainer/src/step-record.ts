/**
 * One line of `metrics.jsonl`.
 */
import type { PolicyVersion } from "@gimbal-rl/core";

/** The metrics of one finished step, plain JSON. */
export interface StepRecord {
  /** From 1. */
  readonly step: number;
  /** Version of the weights after the step. */
  readonly policyVersion: PolicyVersion;
  /** Unix milliseconds at the end of the step. */
  readonly atMs: number;
  /** Wall-clock seconds of the step, checkpoint left out. */
  readonly seconds: number;
  /** The step's numbers, by name. */
  readonly metrics: Readonly<Record<string, number | null>>;
  /** What the caller added: data cursor, rewards, evaluation. */
  readonly extra: Readonly<Record<string, unknown>>;
}
