/**
 * A toy model and batches for tests: real trajectories with random tokens whose recorded log-probabilities are those of
 * the policy that would have sampled them.
 */
import {
  type Backend,
  createPolicy,
  createReferenceBackend,
  type ModelConfig,
  type ModelPolicy,
  type TrainablePolicy,
} from "@gimbal-rl/compute";
import {
  type AttemptId,
  asId,
  type CallId,
  createRandom,
  type GroupId,
  hashToSeed,
  type PolicyVersion,
  type TaskId,
  type TrainingBatch,
  type Trajectory,
} from "@gimbal-rl/core";
import { buildTrainingBatches } from "@gimbal-rl/graph";
import { groupAdvantages } from "@gimbal-rl/objective";

const toyConfig: ModelConfig = {
  architecture: "qwen3",
  vocabularySize: 24,
  width: 16,
  intermediateWidth: 24,
  layers: 2,
  heads: 2,
  keyValueHeads: 1,
  headWidth: 8,
  normEpsilon: 1e-6,
  ropeTheta: 10000,
  maxPositions: 128,
  tiedEmbeddings: true,
};

export function createToyPolicy(
  seed = 1,
  backend: Backend = createReferenceBackend(),
): ModelPolicy {
  return createPolicy(toyConfig, backend, seed);
}

/** A trajectory of two turns after a common system prompt; log-probabilities are left at -1. */
export function toyTrajectory(name: string, seed: number): Trajectory {
  const random = createRandom(hashToSeed("toy", name, seed));
  const ids = (count: number): number[] =>
    Array.from({ length: count }, () => random.integer(toyConfig.vocabularySize));
  const callId = asId<CallId>(`${name}-call`);
  const given = (some: readonly number[]) =>
    ({ kind: "given", ids: some, logprobs: [], callId, trained: false, policyRuns: [] }) as const;
  const sampled = (some: readonly number[]) =>
    ({
      kind: "sampled",
      ids: some,
      logprobs: some.map(() => -1),
      callId,
      trained: true,
      policyRuns: [{ policyVersion: asId<PolicyVersion>("v"), tokens: some.length }],
    }) as const;
  const segments = [
    given([1, 2, 3, 4, 5, 6, ...ids(2)]),
    sampled(ids(4)),
    given(ids(3)),
    sampled(ids(3 + random.integer(3))),
  ];
  const sampledTokens = segments.reduce((sum, s) => sum + (s.trained ? s.ids.length : 0), 0);
  return {
    attemptId: asId<AttemptId>(name),
    branches: [{ segments, callIds: [callId] }],
    fidelity: {
      sampledTokens,
      trainedTokens: sampledTokens,
      coverage: 1,
      leftOut: [],
      calls: 1,
      branches: 1,
      links: {},
      malformedCalls: 0,
      fatal: [],
    },
  };
}

/** Replaces the recorded log-probabilities by the policy's own. */
async function recordLogprobs(
  policy: TrainablePolicy,
  batch: TrainingBatch,
): Promise<TrainingBatch> {
  const { temperature, terms, trie } = batch;
  const pass = await policy.forward(trie, terms, { temperature, keepForBackward: false });
  const behaviourLogprobs = pass.logprobs.slice();
  pass.free();
  return { ...batch, terms: { ...terms, behaviourLogprobs } };
}

/** Batches of one step: two groups of three attempts, rewards by parity of the seed, sampled by `policy`. */
export async function toyBatches(
  policy: TrainablePolicy,
  step: number,
  maxRows?: number,
): Promise<TrainingBatch[]> {
  const groups = ["a", "b"].map((group) => {
    const names = [0, 1, 2].map((index) => `${group}${index}`);
    const verdict = { verifier: "toy", score: 1, failureClass: "none", evidence: [] } as const;
    return {
      group: {
        groupId: asId<GroupId>(`${group}-${step}`),
        taskId: asId<TaskId>(group),
        members: names.map((name) => ({ trajectory: toyTrajectory(name, step), verdict })),
      },
      advantages: groupAdvantages([1, 0, 0.5]),
    };
  });
  const options = maxRows === undefined ? { temperature: 1 } : { temperature: 1, maxRows };
  const batches = buildTrainingBatches(groups, options);
  return Promise.all(batches.map((batch) => recordLogprobs(policy, batch)));
}
