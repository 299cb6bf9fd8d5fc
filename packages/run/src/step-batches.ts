/**
 * Collected groups -> training batches of a step: rewards, the control if any, advantages, tries.
 * A pure function of stored data, so that a run can be replayed without a model or a harness.
 */
import {
  createRandom,
  type FidelityReport,
  GimbalError,
  hashToSeed,
  type Random,
  type Store,
  shuffled,
  type TrainingBatch,
} from "@gimbal-rl/core";
import { buildTrainingBatches } from "@gimbal-rl/graph";
import { groupAdvantages } from "@gimbal-rl/objective";
import { buildGroups, type CollectedGroup } from "@gimbal-rl/rollout";
import type { RunConfig } from "./run-config.js";

/** What a step trains on. */
export interface StepBatches {
  readonly batches: readonly TrainingBatch[];
  readonly fidelity: FidelityReport;
  /** Mean reward over the scored attempts, before any control. */
  readonly reward: number;
  readonly passRate: number;
  readonly attempts: number;
  /** Groups whose attempts did not all score the same. */
  readonly groupsWithSignal: number;
  readonly sampledTokens: number;
  /** Tokens with a loss term, advantage 0 included. */
  readonly trainedTokens: number;
}

/**
 * Builds the batches of a step from what is stored.
 * @param after - Sequence of the step's plan in the log: its calls came later, so older ones are not read.
 * @throws {GimbalError} `store-corrupt` when no attempt has a score: collected attempts have one.
 */
export async function buildStepBatches(
  collected: readonly CollectedGroup[],
  store: Store,
  config: RunConfig,
  after = 0,
): Promise<StepBatches> {
  const { fidelity, groups } = await buildGroups(collected, store, after);
  const weighted = groups.map((group) => {
    const scores = group.members.map((member) => member.verdict.score);
    const rewards =
      config.control === "shuffled-rewards"
        ? shuffledScores(scores, createRandom(hashToSeed("shuffle", config.seed, group.groupId)))
        : scores;
    return { group, advantages: groupAdvantages(rewards) };
  });
  const scores = groups.flatMap((group) =>
    group.members.map((member) => member.verdict.score).filter((score) => score !== null),
  );
  if (scores.length === 0) {
    throw new GimbalError(
      "store-corrupt",
      `None of the ${groups.length} groups of the step holds a scored attempt; a group is collected when its attempts are judged.`,
    );
  }
  const batches = buildTrainingBatches(weighted, {
    temperature: config.temperature,
    maxRows: config.maxRows,
  });
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    batches,
    fidelity,
    reward: mean(scores),
    passRate: mean(scores.map((score) => (score >= 1 ? 1 : 0))),
    attempts: scores.length,
    groupsWithSignal: weighted.filter(({ advantages }) =>
      advantages.some((advantage) => advantage !== null && advantage !== 0),
    ).length,
    sampledTokens: fidelity.sampledTokens,
    trainedTokens: batches.reduce((sum, batch) => sum + batch.terms.rows.length, 0),
  };
}

/**
 * The control: the same rewards within the group, without relation to what was done. An attempt without a score stays
 * without one, so that what is trained on is the same as without the control.
 */
function shuffledScores(scores: readonly (number | null)[], random: Random): (number | null)[] {
  const mixed = shuffled(
    scores.filter((score) => score !== null),
    random,
  );
  let next = 0;
  return scores.map((score) => {
    if (score === null) return null;
    next += 1;
    return mixed[next - 1] ?? null;
  });
}
