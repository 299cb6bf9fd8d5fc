import type { Task } from "@gimbal-rl/core";
import { defaultRunConfig } from "@gimbal-rl/run";
import { describe, expect, it } from "vitest";
import { createDeskRunTasks } from "./desk-run.js";

/** What an agent is given and must reach, whatever the task is called. */
const contentOf = ({ files, gradingFiles, instruction, verifier }: Task): string =>
  JSON.stringify({ files, gradingFiles, instruction, verifier });

describe("createDeskRunTasks", () => {
  const sets = [1, 2, 3].map((seed) => createDeskRunTasks(defaultRunConfig, seed));

  it("gives three sets without a common task, by id and by content, and repeats none", () => {
    for (const { heldout, heldoutFamily, train } of sets) {
      const all = [...train, ...heldout, ...heldoutFamily];
      expect(all).toHaveLength(12 * 4 + 64 + 16);
      expect(new Set(all.map(({ taskId }) => taskId)).size).toBe(all.length);
      expect(new Set(all.map(contentOf)).size).toBe(all.length);
    }
  });

  it("never trains on a task that any seed evaluates on", () => {
    const trained = new Set(sets.flatMap(({ train }) => train.map(contentOf)));
    const evaluated = sets.flatMap(({ heldout, heldoutFamily }) => [...heldout, ...heldoutFamily]);
    expect(evaluated.filter((task) => trained.has(contentOf(task)))).toEqual([]);
  });

  it("evaluates on the trained families, and keeps one family out of training whole", () => {
    for (const { heldout, heldoutFamily, train } of sets) {
      const familiesOf = (tasks: readonly Task[]): string[] =>
        [...new Set(tasks.map(({ family }) => family))].sort();
      expect(familiesOf(heldout)).toEqual(familiesOf(train));
      expect(familiesOf(train).length).toBeGreaterThanOrEqual(6);
      expect(familiesOf(heldoutFamily)).toHaveLength(1);
      expect(familiesOf(train)).not.toContain(familiesOf(heldoutFamily)[0]);
    }
  });

  it("draws the same tasks for a seed, and others for another", () => {
    expect(createDeskRunTasks(defaultRunConfig, 1)).toEqual(sets[0]);
    expect(sets[1]?.heldout).not.toEqual(sets[0]?.heldout);
  });
});
