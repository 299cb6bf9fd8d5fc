import {
  asId,
  type CallId,
  type PolicyVersion,
  type SessionId,
  type Task,
  type TaskId,
} from "@gimbal-rl/core";
import { callFromTokens } from "@gimbal-rl/graph";
import { groupAdvantages } from "@gimbal-rl/objective";
import { type AttemptRecord, type CollectedGroup, planGroup } from "@gimbal-rl/rollout";
import { createMemoryStore } from "@gimbal-rl/store";
import { beforeAll, describe, expect, it } from "vitest";
import { defaultRunConfig, type RunConfig } from "./run-config.js";
import { buildStepBatches, type StepBatches } from "./step-batches.js";

const store = createMemoryStore();
/** Scores by group: one solved, one with a score that is missing, one without signal, one with a score in between. */
const scoresOfGroups = [
  [1, 0, 0, 0],
  [1, null, 0, 0],
  [0, 0, 0, 0],
  [0.5, 1, 0.5, 0],
];
const collected: CollectedGroup[] = [];

/** Every attempt asks once and samples ten tokens that no other attempt samples. */
beforeAll(async () => {
  for (const [g, scores] of scoresOfGroups.entries()) {
    const task = { taskId: asId<TaskId>(`task-${g}`) } as unknown as Task;
    const policyVersion = asId<PolicyVersion>("step-0");
    const options = { label: "step-0001", task, size: scores.length, runSeed: 1, policyVersion };
    const plan = planGroup(options);
    const records: AttemptRecord[] = [];
    for (const [i, score] of scores.entries()) {
      const attempt = plan.attempts[i];
      if (attempt === undefined) throw new RangeError(`No attempt ${i}.`);
      const sessionId = asId<SessionId>(`session-${g}-${i}`);
      const record = { attempt, sessionId, failureClass: "none", verdict: { score } };
      records.push(record as unknown as AttemptRecord);
      const callId = asId<CallId>(`${sessionId}.0`);
      const call = callFromTokens({
        ...{ index: 0, callId, sessionId, attemptId: attempt.attemptId, promptIds: [1, 2, 3] },
        sampledIds: Array.from({ length: 10 }, (_, t) => 100 + 40 * g + 10 * i + t),
        logprobs: Array.from({ length: 10 }, () => -1),
      });
      await store.append("call-end", callId, call);
    }
    collected.push({ plan, records, missing: 0 });
  }
});

function build(change: Partial<RunConfig>, groups = collected): Promise<StepBatches> {
  return buildStepBatches(groups, store, { ...defaultRunConfig, seed: 1, facts: {}, ...change });
}

/** Advantage that the tokens of each attempt of a group are trained with; null = they are not trained. */
function advantagesOf({ batches }: StepBatches, group: number): (number | null)[] {
  return [0, 1, 2, 3].map((i) => {
    const first = 100 + 40 * group + 10 * i;
    const found = new Set(
      batches.flatMap(({ terms }) =>
        [...terms.advantages].filter((_, n) => {
          const targetId = terms.targetIds[n] ?? 0;
          return targetId >= first && targetId < first + 10;
        }),
      ),
    );
    expect(found.size).toBeLessThanOrEqual(1);
    return [...found][0] ?? null;
  });
}

/** Rounded as batches hold them; a group without signal may be left out of the batches. */
const expected = (scores: readonly (number | null)[]): (number | null)[] =>
  groupAdvantages(scores).map((value) => (value === null ? null : Math.fround(value)));

const sorted = (values: readonly (number | null)[]): (number | null)[] =>
  [...values].sort((a, b) => (a ?? -9) - (b ?? -9));

describe("buildStepBatches", () => {
  it("trains each attempt with its own advantage, and one without a score not at all", async () => {
    const built = await build({});
    for (const g of [0, 1, 3])
      expect(advantagesOf(built, g)).toEqual(expected(scoresOfGroups[g] ?? []));
    expect(advantagesOf(built, 1)[1]).toBeNull();
  });

  it("counts rewards and passes over the scored attempts, and groups that differ as signal", async () => {
    const built = await build({});
    expect(built).toMatchObject({ attempts: 15, groupsWithSignal: 3, sampledTokens: 160 });
    expect(built.reward).toBeCloseTo(4 / 15, 12);
    expect(built.passRate).toBeCloseTo(3 / 15, 12);
    const [, , still] = collected;
    expect(await build({}, still === undefined ? [] : [still])).toMatchObject({
      ...{ groupsWithSignal: 0, passRate: 0, reward: 0 },
    });
  });

  it("with the control, deals the same advantages out anew within each group, by seed", async () => {
    const solved = new Set<number>();
    for (let seed = 1; seed <= 24; seed += 1) {
      const built = await build({ control: "shuffled-rewards", seed });
      for (const g of [0, 1, 3]) {
        expect(sorted(advantagesOf(built, g))).toEqual(sorted(expected(scoresOfGroups[g] ?? [])));
      }
      // Without a score there is nothing to train, whatever the control deals out.
      expect(advantagesOf(built, 1)[1]).toBeNull();
      const dealt = advantagesOf(built, 0);
      solved.add(dealt.indexOf(Math.max(...dealt.map((value) => value ?? 0))));
      const again = await build({ control: "shuffled-rewards", seed });
      expect(advantagesOf(again, 0)).toEqual(dealt);
    }
    expect([...solved].sort()).toEqual([0, 1, 2, 3]);
  });

  it("reports the same numbers with the control as without: they are of the attempts, not of what is trained", async () => {
    const numbersOf = ({
      attempts,
      groupsWithSignal,
      passRate,
      reward,
      trainedTokens,
    }: StepBatches) => ({
      ...{ attempts, groupsWithSignal, passRate, reward, trainedTokens },
    });
    const plain = numbersOf(await build({}));
    expect(numbersOf(await build({ control: "shuffled-rewards" }))).toEqual(plain);
  });

  it("refuses a step in which nothing was scored", async () => {
    const unscored = collected.slice(0, 1).map((group) => ({
      ...group,
      records: group.records.map((record) => ({
        ...record,
        verdict: { ...record.verdict, score: null },
      })),
    }));
    await expect(build({}, unscored)).rejects.toMatchObject({ code: "store-corrupt" });
  });
});
