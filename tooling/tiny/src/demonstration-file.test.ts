/**
 * Laws of the recorded fixtures: two sets without a common task, made with the bundled tokenizer and the one Pi version,
 * apart from everything the demo trains or evaluates on.
 */
import type { Task } from "@gimbal-rl/core";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { expect, test } from "vitest";
import { readDemonstrations } from "./demonstration-file.js";
import { type DemonstrationSet, demonstrationSets, expertTasks } from "./demonstration-sets.js";
import { demonstrationsDir, modelDir } from "./paths.js";

const [tiny, pivot, renderer] = await Promise.all([
  readDemonstrations(`${demonstrationsDir}/tiny.jsonl.gz`),
  readDemonstrations(`${demonstrationsDir}/pivot.jsonl.gz`),
  loadRendererFromFolder(modelDir),
]);
const sets = [tiny, pivot];

/** The files and the words of a task, whatever it is called. */
const contentOf = ({ files, instruction }: Task): string => JSON.stringify([instruction, files]);

test("the ids belong to the bundled tokenizer and template, and to one Pi", () => {
  for (const { header } of sets) {
    expect(header).toMatchObject({ harness: "pi", harnessVersion: "1.6.0" });
    expect(header.tokenizer).toBe(renderer.fingerprint.tokenizer);
    expect(header.template).toBe(renderer.fingerprint.template);
  }
});

test("the sets hold the runs that they are defined by, and share no task, by id or by content", () => {
  const contents: string[] = [];
  for (const [i, { demonstrations, header }] of sets.entries()) {
    const set = demonstrationSets[i] as DemonstrationSet;
    expect(header).toMatchObject({ split: set.split, seed: set.seed });
    const drawn = expertTasks(set);
    expect(demonstrations.map(({ habit, taskId }) => `${habit} ${taskId}`).sort()).toEqual(
      drawn.map(({ habit, task }) => `${habit} ${task.taskId}`).sort(),
    );
    contents.push(...drawn.map(({ task }) => contentOf(task)));
  }
  expect(new Set(contents).size).toBe(contents.length);
}, 60_000);

test("every trajectory is whole: one branch, coverage 1, its own ids as many as its log-probabilities", () => {
  for (const { demonstrations } of sets) {
    for (const { taskId, trajectory } of demonstrations) {
      expect(trajectory.fidelity, taskId).toMatchObject({ coverage: 1, branches: 1, fatal: [] });
      for (const { ids, kind, logprobs } of trajectory.branches[0]?.segments ?? []) {
        expect(logprobs, taskId).toHaveLength(kind === "sampled" ? ids.length : 0);
      }
    }
  }
});

test("a part of each set was recorded at level process, with other paths in every run", () => {
  for (const { demonstrations } of sets) {
    const own = demonstrations.filter(({ sandboxLevel }) => sandboxLevel === "process");
    const systems = new Set(own.map(({ messages }) => JSON.stringify(messages[0])));
    expect(own.length).toBeGreaterThan(demonstrations.length / 5);
    expect(systems.size).toBeGreaterThan(own.length / 2);
  }
});
