/** Tasks and run folders for the scribe policy in the own-harness example. */
import { asId, type Harness, type SandboxLevel, type Task, type TaskId } from "@gimbal-rl/core";
import { defaultRunConfig, type RunConfig, type RunTasks } from "@gimbal-rl/run";
import { createRunFolder } from "@gimbal-rl/sdk";

const examplePath = new URL("../../../examples/own-harness/harness.mjs", import.meta.url).href;

/** The example, loaded as the command line does it. */
export const exampleHarness: Harness = (
  (await import(/* @vite-ignore */ examplePath)) as { readonly default: Harness }
).default;

/** A task that "yes" in answer.txt solves. */
export function scribeTask(name: string, split: Task["split"] = "train"): Task {
  return {
    taskId: asId<TaskId>(`scribe/${name}`),
    suite: "scribe",
    family: "scribe",
    split,
    instruction: `Answer question ${name} with yes or no in answer.txt.`,
    files: { "question.txt": `Is ${name} a good name?\n` },
    protectedPaths: ["question.txt"],
    gradingFiles: {},
    verifier: { kind: "file-state-equals", options: { files: { "answer.txt": "yes" } } },
    budgets: { maxCalls: 5, maxTokensPerCall: 80, wallClockMs: 120_000 },
  };
}

/** What a test run is made of; small, because every attempt starts a real process. */
export interface ScribeRunOptions {
  readonly runDir: string;
  readonly sandboxLevel: SandboxLevel;
  readonly steps: number;
  readonly heldout: number;
  readonly threads: number;
  /** Default: one whose steps have groups with different rewards. */
  readonly seed?: number;
}

/** Makes the folder; two groups of two attempts per step. */
export async function createScribeRun(options: ScribeRunOptions): Promise<RunConfig> {
  const { heldout, runDir, sandboxLevel, seed = 3, steps, threads } = options;
  const config: RunConfig = {
    ...defaultRunConfig,
    seed,
    steps,
    groupsPerStep: 2,
    groupSize: 2,
    learningRate: 1e-2,
    concurrency: 2,
    evaluation: { heldoutTasks: heldout, heldoutFamilyTasks: 0 },
    facts: { suite: "scribe" },
  };
  const tasks: RunTasks = {
    train: Array.from({ length: steps * 2 }, (_, i) => scribeTask(`train-${i}`)),
    heldout: Array.from({ length: heldout }, (_, i) => scribeTask(`heldout-${i}`, "heldout")),
    heldoutFamily: [],
  };
  const { id, version } = exampleHarness;
  const harness = { id, version };
  const manifest = { format: 1, config, harness, sandboxLevel, model: "scribe", threads } as const;
  await createRunFolder(runDir, manifest, tasks);
  return config;
}
