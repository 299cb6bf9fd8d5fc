/**
 * A branch as the packer sees it: its ids, and the loss terms on it by position.
 */
import { type Branch, GimbalError } from "@gimbal-rl/core";

/** One target on a sequence. */
export interface SequenceTerm {
  /** Position of the target; the row before it predicts it. At least 1. */
  readonly position: number;
  /** Index of the attempt in the batch. */
  readonly attempt: number;
  readonly advantage: number;
  /** Natural log, nats. */
  readonly behaviourLogprob: number;
  readonly weight: number;
}

/** Ids up to and including the last target, and the targets. */
export interface TermSequence {
  readonly ids: Int32Array;
  readonly terms: readonly SequenceTerm[];
}

/** What the terms of a branch carry. */
export interface TermValues {
  readonly attempt: number;
  readonly advantage: number;
  readonly weight: number;
  /** False writes 0 for log-probabilities that are not there (SFT). */
  readonly requireLogprobs: boolean;
}

/**
 * The trained targets of a branch, or null when it has none. Ids after the last target are dropped: nothing reads them.
 * @throws {GimbalError} `missing-logprobs`, `shape-mismatch`.
 */
export function branchToSequence(branch: Branch, values: TermValues): TermSequence | null {
  const { attempt, advantage, weight } = values;
  const terms: SequenceTerm[] = [];
  let position = 0;
  let length = 0;
  for (const { ids, kind, logprobs, trained, callId } of branch.segments) {
    if (kind === "sampled" && trained) {
      if (position === 0) {
        throw new GimbalError(
          "shape-mismatch",
          `Call ${callId} is trained from position 0; a target needs a token before it. Rebuild the trajectory.`,
        );
      }
      if (values.requireLogprobs && logprobs.length !== ids.length) {
        throw new GimbalError(
          "missing-logprobs",
          `Call ${callId} has ${logprobs.length} log-probabilities for ${ids.length} trained ids. Rebuild the trajectory, or use SFT batches.`,
        );
      }
      for (let i = 0; i < ids.length; i += 1) {
        const behaviourLogprob = logprobs.length === ids.length ? logprobs[i] : 0;
        terms.push({ position: position + i, attempt, advantage, behaviourLogprob, weight });
      }
      length = position + ids.length;
    }
    position += ids.length;
  }
  if (terms.length === 0) return null;
  const ids = new Int32Array(length);
  let at = 0;
  for (const segment of branch.segments) {
    if (at >= length) break;
    ids.set(segment.ids, at);
    at += segment.ids.length;
  }
  return { ids, terms };
}
