/**
 * What the sampler has done, in numbers.
 */
import type { StepBuilder } from "./step-builder.js";

/** Counters since the engine started, and its load now. */
export interface SamplerStats {
  /** Batches run through the model. */
  readonly steps: number;
  /** Rows (tokens) run through the model: each stored token once, plus `recomputedRows`. */
  readonly computedRows: number;
  /** Rows run again because only their logits were missing. */
  readonly recomputedRows: number;
  /** Prompt tokens that some earlier or simultaneous call had computed. */
  readonly reusedRows: number;
  readonly sampledTokens: number;
  /** Milliseconds spent in steps. */
  readonly busyMs: number;
  /** Calls put back because slots ran out. */
  readonly preemptions: number;
  readonly abortedCalls: number;
  /** Times the weights were replaced. */
  readonly weightLoads: number;
  /** Cached tokens dropped to make room. */
  readonly evictedRows: number;
  readonly waiting: number;
  readonly running: number;
  readonly usedSlots: number;
  readonly segments: number;
}

/** Counters that the scheduler adds to. */
export type MutableStats = { -readonly [Key in keyof SamplerStats]: SamplerStats[Key] };

/** All zero. */
export function emptyStats(): MutableStats {
  return {
    steps: 0,
    computedRows: 0,
    recomputedRows: 0,
    reusedRows: 0,
    sampledTokens: 0,
    busyMs: 0,
    preemptions: 0,
    abortedCalls: 0,
    weightLoads: 0,
    evictedRows: 0,
    waiting: 0,
    running: 0,
    usedSlots: 0,
    segments: 0,
  };
}

/** Adds one batch. */
export function countStep(stats: MutableStats, builder: StepBuilder): void {
  stats.steps += 1;
  stats.computedRows += builder.rows;
  stats.recomputedRows += builder.recomputedRows;
}
