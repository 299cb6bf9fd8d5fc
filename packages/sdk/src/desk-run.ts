/**
 * The main job on the embedded default: the tiny policy in the real Pi on the desk suite.
 */
import { createDeskTasks } from "@gimbal-rl/desk";
import { defaultRunConfig, type RunConfig, type RunTasks } from "@gimbal-rl/run";
import { type CreateGrpoRunOptions, createGrpoRun, type RunSettings } from "./create-grpo-run.js";

/**
 * Learning rates for the tiny policy. A thousand attempts carry too little signal for embeddings, which would learn the
 * names of the tasks that were tried. What all tasks share is learned from the same attempts reliably: the choice of
 * habit, and through the norms how sharply to choose, so they move most (docs/decisions/0011, 0012).
 */
export const tinyPolicySettings: RunSettings = {
  learningRate: 1.5e-4,
  learningRateScales: { embedding: 0, mlp: 1, attention: 1, norm: 10, finalNorm: 200 },
  adamBeta2: 0.95,
};

/** The full demo: measured in docs/architecture/demo.md. */
export const demoSettings: RunSettings = {
  ...tinyPolicySettings,
  steps: 18,
  groupsPerStep: 9,
  groupSize: 6,
  evaluation: { heldoutTasks: 105, heldoutFamilyTasks: 16 },
};

/** The same road in under a minute; its gain means nothing. */
export const quickDemoSettings: RunSettings = {
  ...tinyPolicySettings,
  steps: 2,
  groupsPerStep: 2,
  groupSize: 4,
  evaluation: { heldoutTasks: 7, heldoutFamilyTasks: 1 },
};

/** Options of {@link createDeskRun}. */
export type CreateDeskRunOptions = Omit<CreateGrpoRunOptions, "suite" | "tasks">;

/** Tasks of a desk run: training tasks are never repeated; the three sets share no member. */
export function createDeskRunTasks(
  config: Pick<RunConfig, "steps" | "groupsPerStep" | "evaluation">,
  seed: number,
): RunTasks {
  const { evaluation, groupsPerStep, steps } = config;
  const draw = (split: "train" | "heldout" | "heldout-family", count: number) =>
    createDeskTasks({ split, seed, count });
  return {
    train: draw("train", Math.max(1, steps * groupsPerStep)),
    heldout: draw("heldout", evaluation.heldoutTasks),
    heldoutFamily: draw("heldout-family", evaluation.heldoutFamilyTasks),
  };
}

/**
 * Makes the folder of a desk run; `continueGrpoRun` then runs it.
 * @throws {GimbalError} `config-invalid`, `store-unwritable`, `model-invalid`.
 */
export async function createDeskRun(options: CreateDeskRunOptions): Promise<RunConfig> {
  const { seed, settings } = options;
  const tasks = createDeskRunTasks({ ...defaultRunConfig, ...settings }, seed);
  return createGrpoRun({ ...options, suite: "desk", tasks });
}
