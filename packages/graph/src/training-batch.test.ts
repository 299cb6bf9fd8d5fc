import {
  type AttemptId,
  asId,
  type GroupId,
  type TaskId,
  type TrainingBatch,
  type Trajectory,
  type TrajectoryGroup,
} from "@gimbal-rl/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { makeCall, randomAttempt } from "../test/calls.js";
import { buildSftBatches, buildTrainingBatch, buildTrainingBatches } from "./training-batch.js";
import { buildTrajectory } from "./trajectory.js";

const seeds = fc.integer({ min: 0, max: 2 ** 31 });
const verdict = { verifier: "v", score: 1, failureClass: "none", evidence: [] } as const;

function randomGroup(name: string, seed: number, members: number): TrajectoryGroup {
  return {
    groupId: asId<GroupId>(name),
    taskId: asId<TaskId>("task"),
    members: Array.from({ length: members }, (_, index) => {
      const attemptId = asId<AttemptId>(`${name}-${index}`);
      // Half of the seeds repeat, so that attempts with equal tokens occur.
      const { calls } = randomAttempt(seed + (index >> 1), 1 + ((seed + index) % 7));
      return {
        trajectory: buildTrajectory(
          attemptId,
          calls.map((call) => ({ ...call, attemptId })),
        ),
        verdict,
      };
    }),
  };
}

/** A term as text: attempt, the whole context, target and values. */
function termTexts(batch: TrainingBatch): string[] {
  const { terms, trie } = batch;
  return [...terms.rows].map((row, i) => {
    const context: number[] = [];
    for (let at = row; at >= 0; at = trie.parentRows[at]) context.unshift(trie.tokenIds[at]);
    const attempt = batch.attemptIds?.[terms.attempts[i]];
    return `${attempt} ${context.join(",")} > ${terms.targetIds[i]} ${terms.advantages[i]} ${terms.behaviourLogprobs[i]} ${terms.weights[i]}`;
  });
}

/** The same from the trajectories, without a trie. */
function expectedTexts(trajectory: Trajectory, advantage: number): string[] {
  return trajectory.branches.flatMap((branch) => {
    const context: number[] = [];
    return branch.segments.flatMap(({ ids, logprobs, trained }) =>
      ids.flatMap((id, i) => {
        const text = `${trajectory.attemptId} ${context.join(",")} > ${id} ${Math.fround(advantage)} ${Math.fround(logprobs[i])} 1`;
        context.push(id);
        return trained ? [text] : [];
      }),
    );
  });
}

function expectTrieLaws({ trie }: TrainingBatch): void {
  const rows = trie.tokenIds.length;
  const segments = trie.segmentStarts.length;
  expect([trie.positions.length, trie.parentRows.length]).toEqual([rows, rows]);
  const paths = new Set<string>();
  const pathOfRow: string[] = [];
  for (let s = 0; s < segments; s += 1) {
    const start = trie.segmentStarts[s];
    const end = s + 1 < segments ? trie.segmentStarts[s + 1] : rows;
    const parent = trie.segmentParents[s];
    expect(end).toBeGreaterThan(start);
    expect(parent).toBeLessThan(s);
    const lastOfParent = parent < 0 ? -1 : trie.segmentStarts[parent + 1] - 1;
    for (let row = start; row < end; row += 1) {
      const parentRow = trie.parentRows[row];
      expect(parentRow).toBe(row === start ? lastOfParent : row - 1);
      expect(trie.positions[row]).toBe(parentRow < 0 ? 0 : trie.positions[parentRow] + 1);
      pathOfRow[row] = `${pathOfRow[parentRow] ?? ""},${trie.tokenIds[row]}`;
      paths.add(pathOfRow[row]);
    }
  }
  expect(paths.size).toBe(rows);
}

const branchLength = (trajectory: Trajectory): number =>
  Math.max(0, ...trajectory.branches.map((b) => b.segments.reduce((n, s) => n + s.ids.length, 0)));

test("one group is one lawful trie that holds exactly the trained tokens as terms", () => {
  fc.assert(
    fc.property(seeds, fc.integer({ min: 1, max: 6 }), (seed, count) => {
      const group = randomGroup("g", seed, count);
      const advantages = group.members.map((_, index) => index - 1.25);
      const batch = buildTrainingBatch(group, { temperature: 1, advantages });
      expectTrieLaws(batch);
      expect(termTexts(batch)).toEqual(
        group.members.flatMap((member, i) => expectedTexts(member.trajectory, advantages[i])),
      );
    }),
  );
});

test("splitting by rows keeps every term once and stays under the limit where a branch allows it", () => {
  fc.assert(
    fc.property(seeds, fc.integer({ min: 1, max: 40 }), (seed, maxRows) => {
      const groups = [0, 1, 2].map((n) => randomGroup(`g${n}`, seed + (n >> 1) * 100, 3));
      const weighted = groups.map((group) => ({ group, advantages: [1, -0.5, 0] }));
      const batches = buildTrainingBatches(weighted, { temperature: 0.8, maxRows });
      const longest = Math.max(
        ...groups.flatMap((g) => g.members.map((m) => branchLength(m.trajectory))),
      );
      for (const batch of batches) {
        expectTrieLaws(batch);
        expect(batch.trie.tokenIds.length).toBeLessThanOrEqual(Math.max(maxRows, longest));
        expect(batch.temperature).toBe(0.8);
      }
      // Batches without any gradient go last, so the order of terms is not that of the groups.
      const expected = weighted.flatMap(({ advantages, group }) =>
        group.members.flatMap((m, i) => expectedTexts(m.trajectory, advantages[i])),
      );
      expect(batches.flatMap(termTexts).sort()).toEqual(expected.sort());
    }),
  );
});

const single = (name: string, promptIds: number[], sampledIds: number[]): TrajectoryGroup => {
  const attemptId = asId<AttemptId>(`${name}-0`);
  const call = makeCall(0, { promptIds, sampledIds, attemptId });
  return {
    groupId: asId<GroupId>(name),
    taskId: asId<TaskId>("task"),
    members: [{ trajectory: buildTrajectory(attemptId, [call]), verdict }],
  };
};

test("groups with a common system prompt compute it once", () => {
  const system = Array.from({ length: 100 }, (_, i) => i);
  const groups = ["a", "b", "c"].map((name, i) => ({
    group: single(name, [...system, 200 + i], [7]),
    advantages: [1],
  }));
  const [batch, ...rest] = buildTrainingBatches(groups, { temperature: 1 });
  expect(rest).toEqual([]);
  expect(batch.trie.tokenIds.length).toBe(100 + 3 * 2);
  expect(batch.groupId).toBe("a+b+c");
  expect(batch.attemptIds).toEqual(["a-0", "b-0", "c-0"]);
});

test("groups without any advantage come last, in batches of their own", () => {
  const groups = [0, 1, 0, -1].map((advantage, i) => ({
    group: single(`g${i}`, [1, 2], [3, 4 + i]),
    advantages: [advantage],
  }));
  const batches = buildTrainingBatches(groups, { temperature: 1 });
  expect(batches.map((batch) => batch.groupId)).toEqual(["g1+g3", "g0+g2"]);
});

test("two attempts that sampled the same tokens share rows and keep two terms", () => {
  const [a] = single("a", [1, 2], [3, 4]).members;
  const [b] = single("b", [1, 2], [3, 4]).members;
  const group = { groupId: asId<GroupId>("g"), taskId: asId<TaskId>("t"), members: [a, b] };
  const { terms, trie } = buildTrainingBatch(group, { temperature: 1, advantages: [1, -1] });
  expect(trie.tokenIds).toEqual(Int32Array.of(1, 2, 3, 4));
  expect(terms.rows).toEqual(Int32Array.of(1, 2, 1, 2));
  expect(terms.attempts).toEqual(Int32Array.of(0, 0, 1, 1));
  expect(terms.advantages).toEqual(Float32Array.of(1, 1, -1, -1));
});

test("a member without an advantage contributes neither rows nor terms", () => {
  const [a] = single("a", [1], [2]).members;
  const [b] = single("b", [5], [6]).members;
  const group = { groupId: asId<GroupId>("g"), taskId: asId<TaskId>("t"), members: [a, b] };
  const batch = buildTrainingBatch(group, { temperature: 1, advantages: [null, 2] });
  expect(batch.trie.tokenIds).toEqual(Int32Array.of(5, 6));
  expect(batch.terms.attempts).toEqual(Int32Array.of(1));
});

test("a group that trains nothing gives an empty batch and no batches", () => {
  const group = single("a", [1], [2]);
  const batch = buildTrainingBatch(group, { temperature: 1, advantages: [null] });
  expect([batch.trie.tokenIds.length, batch.terms.rows.length]).toEqual([0, 0]);
  expect(buildTrainingBatches([{ group, advantages: [null] }], { temperature: 1 })).toEqual([]);
});

test("supervised batches have weight 1 terms and need no log-probabilities", () => {
  const attemptId = asId<AttemptId>("demo");
  const call = makeCall(0, { promptIds: [1], sampledIds: [2, 3], logprobs: [], attemptId });
  const trajectory = buildTrajectory(attemptId, [call], { requireLogprobs: false });
  const [{ terms }] = buildSftBatches([trajectory]);
  expect(terms.targetIds).toEqual(Int32Array.of(2, 3));
  expect(terms.weights).toEqual(Float32Array.of(1, 1));
  const group = { ...single("a", [1], [2]), members: [{ trajectory, verdict }] };
  expect(() => buildTrainingBatch(group, { temperature: 1, advantages: [1] })).toThrowError(
    expect.objectContaining({ code: "missing-logprobs" }),
  );
});

test("a wrong number of advantages or one that is not finite is refused", () => {
  const group = single("a", [1], [2]);
  for (const advantages of [[], [Number.NaN]]) {
    expect(() => buildTrainingBatch(group, { temperature: 1, advantages })).toThrowError(
      expect.objectContaining({ code: "shape-mismatch" }),
    );
  }
});
