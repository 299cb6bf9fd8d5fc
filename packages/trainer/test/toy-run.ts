/** A toy training run from start or resume to its end; returns the digest of the weights. */
import type { TrainerEvent } from "../src/run-folder.js";
import { createTrainer } from "../src/trainer.js";
import { digestWeights } from "../src/weights-digest.js";
import { createToyPolicy, toyBatches } from "./toy.js";

export async function trainToy(
  runDir: string,
  steps: number,
  onEvent: (event: TrainerEvent) => void,
): Promise<string> {
  const trainer = await createTrainer({
    policy: createToyPolicy(),
    runDir,
    seed: 1,
    schedule: { kind: "constant", peak: 1e-2, warmupSteps: 2 },
    optimizer: { maxGradientNorm: 1, weightDecay: 0.01 },
    onEvent,
  });
  while (trainer.completedSteps() < steps) {
    const step = trainer.completedSteps() + 1;
    await trainer.step(await toyBatches(trainer.policy, step), { cursor: step });
  }
  return digestWeights(trainer.policy);
}
