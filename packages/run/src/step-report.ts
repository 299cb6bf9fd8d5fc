/**
 * The numbers of one finished step, as `metrics.jsonl` keeps them.
 */
import type { LeftOut } from "@gimbal-rl/core";
import type { StepRecord } from "@gimbal-rl/trainer";

/** One step, flat. */
export interface StepReport {
  readonly step: number;
  /** Mean reward and pass rate of the step's attempts, with the weights before the update. */
  readonly reward: number;
  readonly passRate: number;
  readonly attempts: number;
  readonly groupsWithSignal: number;
  /** Trained / sampled tokens. */
  readonly coverage: number;
  /** Why the other sampled tokens are not trained; absent in older runs. */
  readonly leftOut?: readonly LeftOut[];
  /** KL of the sampling policy to the start of the run, nats per token. */
  readonly kl: number;
  readonly sampledTokens: number;
  readonly trainedTokens: number;
  /** Unique tokens computed. */
  readonly rows: number;
  readonly loss: number;
  readonly gradientNorm: number;
  /** Nats per token; null when it was not measured. */
  readonly entropy: number | null;
  readonly logprobMismatchMax: number;
  readonly seconds: StepSeconds;
}

/** Where a step's time went. Harness and tools are CPU or wall seconds summed over attempts. */
export interface StepSeconds {
  readonly wall: number;
  readonly harness: number;
  readonly tools: number;
  readonly grading: number;
  readonly training: number;
}

/** What the run adds to a trainer record. */
export type StepExtra = Omit<
  StepReport,
  "step" | "rows" | "loss" | "gradientNorm" | "entropy" | "logprobMismatchMax"
>;

/** Reads a stored record back. */
export function toStepReport(record: StepRecord): StepReport {
  const extra = record.extra as unknown as StepExtra;
  const metric = (name: string): number => record.metrics[name] ?? 0;
  return {
    ...extra,
    step: record.step,
    rows: metric("rows"),
    loss: metric("loss"),
    gradientNorm: metric("gradientNorm"),
    entropy: record.metrics.entropy ?? null,
    logprobMismatchMax: metric("logprobMismatchMax"),
    seconds: { ...extra.seconds, training: record.seconds },
  };
}
