/** The trie computes each unique token once and gives the gradient of the separate sequences. */

import type { TrainingBatch } from "@gimbal-rl/core";
import { buildSftBatches, buildTrainingBatches } from "@gimbal-rl/graph";
import { expect, test } from "vitest";
import { createToyPolicy, toyTrajectory } from "./toy.js";

async function gradient(
  batches: readonly TrainingBatch[],
): Promise<{ rows: number; values: Map<string, Float32Array> }> {
  const policy = createToyPolicy();
  let rows = 0;
  for (const { temperature, terms, trie } of batches) {
    const pass = await policy.forward(trie, terms, { temperature, keepForBackward: true });
    rows += pass.rows;
    await pass.backward(terms.advantages.map((advantage) => -advantage));
  }
  return { rows, values: await policy.readGradients() };
}

test("the gradient over one trie is within 1e-5 of that over separate sequences", async () => {
  const names = ["a", "b", "c", "d"];
  const trajectories = names.map((name) => toyTrajectory(name, 4));
  const twin = { ...toyTrajectory("a", 4), attemptId: trajectories[1].attemptId };
  const verdict = { verifier: "toy", score: 1, failureClass: "none", evidence: [] } as const;
  const [only] = buildSftBatches(trajectories);
  const members = [...trajectories, twin].map((trajectory) => ({ trajectory, verdict }));
  const group = { groupId: only.groupId, taskId: "t" as never, members };
  const advantages = [1, -0.5, 0.25, -2, 0.7];
  const together = await gradient(
    buildTrainingBatches([{ group, advantages }], { temperature: 0.9 }),
  );
  const apart = await gradient(
    members.flatMap((member, i) =>
      buildTrainingBatches(
        [{ group: { ...group, members: [member] }, advantages: [advantages[i]] }],
        { temperature: 0.9 },
      ),
    ),
  );
  expect(together.rows).toBeLessThan(apart.rows);
  for (const [name, values] of together.values) {
    const other = apart.values.get(name) ?? new Float32Array(values.length);
    const size = Math.max(...values.map(Math.abs));
    const difference = Math.max(...values.map((value, i) => Math.abs(value - other[i])));
    expect(difference / size, name).toBeLessThan(1e-5);
  }
});
