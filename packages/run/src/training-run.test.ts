import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { asId, type PolicyVersion } from "@gimbal-rl/core";
import { createMemoryStore } from "@gimbal-rl/store";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defaultRunConfig } from "./run-config.js";
import type { RunEvent } from "./run-events.js";
import { runTraining, type TrainingRunOptions } from "./training-run.js";

let runDir = "";
beforeAll(async () => {
  runDir = await mkdtemp(join(tmpdir(), "gimbal-run-"));
});
afterAll(() => rm(runDir, { recursive: true, force: true }));

/** Continues a run whose two steps are done, with an engine that holds some weights; tells what happened. */
async function continueFinished(engineVersion: string): Promise<string[]> {
  const told: string[] = [];
  let version = asId<PolicyVersion>(engineVersion);
  const options = {
    config: { ...defaultRunConfig, seed: 1, steps: 2, facts: {} },
    runDir,
    store: createMemoryStore(),
    trainer: {
      completedSteps: () => 2,
      policyVersion: () => asId<PolicyVersion>("step-2"),
      checkpointDir: () => "checkpoints/2",
    },
    engine: {
      policyVersion: () => version,
      loadWeights: async (dir: string, loaded: PolicyVersion) => {
        version = loaded;
        told.push(`load ${dir} as ${loaded}`);
      },
    },
    admission: {
      pause: async () => void told.push("pause"),
      resume: (resumed?: PolicyVersion) => void told.push(`resume ${resumed}`),
    },
    attempts: { clock: { nowMs: () => 0 } },
    tasks: { train: [], heldout: [], heldoutFamily: [] },
    onEvent: (event: RunEvent) => {
      if (event.type === "phase-start") told.push(`start ${event.phase}`);
    },
  } as unknown as TrainingRunOptions;
  const result = await runTraining(options, new AbortController().signal);
  expect(result).toEqual({ before: null, after: null, steps: [] });
  return told;
}

describe("runTraining on a run whose steps are done", () => {
  it("loads no weights into an engine that was started from the last checkpoint", async () => {
    expect(await continueFinished("step-2")).toEqual(["start train"]);
  });

  it("brings an engine with older weights up to the last checkpoint, while no call is admitted", async () => {
    expect(await continueFinished("step-1")).toEqual([
      ...["pause", "load checkpoints/2 as step-2", "resume step-2", "start train"],
    ]);
  });
});
