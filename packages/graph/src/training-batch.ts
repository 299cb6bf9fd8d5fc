/**
 * Trajectory groups -> TrainingBatches: micro-batches of one token trie each.
 *
 * Laws: the terms of all batches together are the trained tokens of all members with an advantage, each once; a batch
 * exceeds `maxRows` only when one branch alone does; groups share one trie while they fit, so a common system prompt
 * is computed once; groups whose advantages are all 0 come last and never share a batch with the others, so that a
 * trainer can leave out their backward pass. Splitting changes cost, never the sum of the terms.
 */
import {
  type AttemptId,
  asId,
  type Branch,
  GimbalError,
  type GroupId,
  type TrainingBatch,
  type Trajectory,
  type TrajectoryGroup,
} from "@gimbal-rl/core";
import { branchToSequence, type TermSequence, type TermValues } from "./term-sequence.js";
import { createTrieBuilder } from "./token-trie.js";

/** A group and the advantage of each member; null leaves the member out (not scored). */
export interface WeightedGroup {
  readonly group: TrajectoryGroup;
  /** [G] one per member. */
  readonly advantages: readonly (number | null)[];
}

/** How batches are cut. */
export interface BatchOptions {
  /** Temperature the terms were sampled at. */
  readonly temperature: number;
  /** Unique tokens in one batch. Default: no limit. */
  readonly maxRows?: number;
}

/** A sequence on its way into a batch. */
interface PackItem {
  readonly groupId: GroupId;
  readonly attemptId: AttemptId;
  readonly branch: Branch;
  readonly values: Omit<TermValues, "attempt">;
}

/** Packs next-fit: an item that does not fit starts a new batch. Items keep their order. */
function packItems(items: readonly PackItem[], options: BatchOptions): TrainingBatch[] {
  const { temperature, maxRows = Number.POSITIVE_INFINITY } = options;
  if (!(maxRows >= 1)) {
    throw new GimbalError("config-invalid", `maxRows is ${maxRows}; expected at least 1.`);
  }
  const batches: TrainingBatch[] = [];
  let builder = createTrieBuilder();
  let attempts = new Map<AttemptId, number>();
  let groups = new Set<GroupId>();
  const flush = (): void => {
    if (builder.rows() === 0) return;
    batches.push({
      groupId: asId<GroupId>([...groups].join("+")),
      attemptIds: [...attempts.keys()],
      ...builder.build(),
      temperature,
    });
    builder = createTrieBuilder();
    attempts = new Map();
    groups = new Set();
  };
  for (const { attemptId, branch, groupId, values } of items) {
    const toSequence = (): TermSequence | null =>
      branchToSequence(branch, { ...values, attempt: attempts.get(attemptId) ?? attempts.size });
    let sequence = toSequence();
    if (sequence === null) continue;
    if (builder.rows() > 0 && builder.rows() + builder.addedRows(sequence) > maxRows) {
      flush();
      sequence = toSequence() ?? sequence;
    }
    if (!attempts.has(attemptId)) attempts.set(attemptId, attempts.size);
    groups.add(groupId);
    builder.add(sequence);
  }
  flush();
  return batches;
}

function groupItems({ advantages, group }: WeightedGroup): PackItem[] {
  if (advantages.length !== group.members.length) {
    throw new GimbalError(
      "shape-mismatch",
      `Group ${group.groupId} has ${group.members.length} members and ${advantages.length} advantages; expected one each.`,
    );
  }
  return group.members.flatMap(({ trajectory }, index) => {
    const advantage = advantages[index];
    if (advantage === null) return [];
    if (!Number.isFinite(advantage)) {
      throw new GimbalError(
        "shape-mismatch",
        `The advantage of attempt ${trajectory.attemptId} is ${advantage}; expected a finite number or null.`,
      );
    }
    return trajectory.branches.map((branch) => ({
      groupId: group.groupId,
      attemptId: trajectory.attemptId,
      branch,
      values: { advantage, weight: 1, requireLogprobs: true },
    }));
  });
}

/**
 * Packs several groups into as few tries as `maxRows` allows. Empty when nothing is trained.
 *
 * `terms.attempts` indexes the batch's `attemptIds`.
 *
 * @throws {GimbalError} `shape-mismatch`, `missing-logprobs`, `config-invalid`.
 * @example
 * const batches = buildTrainingBatches([{ group, advantages: [1, -1] }], { temperature: 1, maxRows: 8192 });
 */
export function buildTrainingBatches(
  groups: readonly WeightedGroup[],
  options: BatchOptions,
): TrainingBatch[] {
  const items = groups.map(groupItems);
  const carriesGradient = (group: readonly PackItem[]): boolean =>
    group.some(({ values }) => values.advantage !== 0);
  return [
    ...packItems(items.filter(carriesGradient).flat(), options),
    ...packItems(items.filter((group) => !carriesGradient(group)).flat(), options),
  ];
}

/**
 * The whole group as one trie. `terms.attempts` indexes the group's members.
 *
 * @throws {GimbalError} `shape-mismatch`, `missing-logprobs`.
 * @example
 * const batch = buildTrainingBatch(group, { temperature: 1, advantages: [1, -1] });
 * batch.trie.tokenIds.length; // unique tokens
 */
export function buildTrainingBatch(
  group: TrajectoryGroup,
  options: { readonly temperature: number; readonly advantages: readonly (number | null)[] },
): TrainingBatch {
  const members = new Map(
    group.members.map(({ trajectory }, index) => [trajectory.attemptId, index]),
  );
  const builder = createTrieBuilder();
  for (const { attemptId, branch, values } of groupItems({
    group,
    advantages: options.advantages,
  })) {
    const sequence = branchToSequence(branch, { ...values, attempt: members.get(attemptId) ?? 0 });
    if (sequence !== null) builder.add(sequence);
  }
  return {
    groupId: group.groupId,
    attemptIds: group.members.map(({ trajectory }) => trajectory.attemptId),
    ...builder.build(),
    temperature: options.temperature,
  };
}

/**
 * Batches for supervised training: every trained token is a term of weight 1 and advantage 1. Log-probabilities are
 * carried when the trajectory has them and 0 otherwise; SFT does not read them.
 *
 * @example
 * const batches = buildSftBatches(demonstrations, { maxRows: 8192 });
 */
export function buildSftBatches(
  trajectories: readonly Trajectory[],
  options: { readonly maxRows?: number } = {},
): TrainingBatch[] {
  const items = trajectories.flatMap(({ attemptId, branches }): PackItem[] =>
    branches.map((branch) => ({
      groupId: asId<GroupId>("sft"),
      attemptId,
      branch,
      values: { advantage: 1, weight: 1, requireLogprobs: false },
    })),
  );
  return packItems(items, { ...options, temperature: 1 });
}
