/**
 * A GRPO run from its folder: creates or continues it, trains, evaluates and writes the report.
 */
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import { createWasmBackend, loadPolicy } from "@gimbal-rl/compute";
import { type Harness, type Sandbox, systemClock } from "@gimbal-rl/core";
import { renderReport } from "@gimbal-rl/eval";
import { grpo } from "@gimbal-rl/objective";
import {
  buildRunReport,
  type RunConfig,
  type RunEvent,
  type RunSummary,
  runTraining,
  summariseRun,
} from "@gimbal-rl/run";
import { openStore } from "@gimbal-rl/store";
import {
  type CreateTrainerOptions,
  createTrainer,
  findCheckpoints,
  policyVersionOf,
} from "@gimbal-rl/trainer";
import { createAttemptStack } from "./attempt-stack.js";
import { readRunFolder } from "./run-manifest.js";

/** Options of {@link continueGrpoRun}. */
export interface ContinueGrpoRunOptions {
  readonly runDir: string;
  /** The prepared harness; its id and version must be those of the run. */
  readonly harness: Harness;
  /** A sandbox of the run's level. */
  readonly sandbox: Sandbox;
  /** Model folder of the start; needed only until the run has its first checkpoint. */
  readonly modelDir: string;
  readonly onEvent?: (event: RunEvent) => void;
}

/** Checkpoints kept besides the first: enough to survive a broken last one. */
const keptCheckpoints = 3;

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(`${path}.tmp`, "w");
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.tmp`, path);
}

/** The trainer's settings as the configuration of a run says them. */
export function trainerSettings(
  config: RunConfig,
): Pick<CreateTrainerOptions, "seed" | "schedule" | "optimizer" | "objective" | "epochs"> {
  const { epochs, klCoefficient, learningRate, maxGradientNorm, seed, warmupSteps, weightDecay } =
    config;
  return {
    seed,
    schedule: { kind: "constant", peak: learningRate, warmupSteps },
    optimizer: { weightDecay, maxGradientNorm },
    objective: { ...grpo.policy, klCoefficient },
    epochs,
  };
}

/**
 * Runs to the end, or until the signal; a stopped run is continued by calling this again.
 *
 * @returns The summary, also written to `report.json`; `report.html` lies beside it.
 * @throws {GimbalError} `not-found`, `config-invalid`, `model-invalid`, `store-corrupt`, `store-unwritable`, `aborted`.
 */
export async function continueGrpoRun(
  options: ContinueGrpoRunOptions,
  signal: AbortSignal,
): Promise<RunSummary> {
  const { harness, modelDir, onEvent, runDir, sandbox } = options;
  const { manifest, tasks } = await readRunFolder(runDir);
  const { config } = manifest;
  const startedAtMs = systemClock.nowMs();
  const store = await openStore(runDir);
  try {
    await using backend = await createWasmBackend({ threads: manifest.threads });
    const started = (await findCheckpoints(runDir)).length > 0;
    await using policy = await loadPolicy(started ? checkpointZero(runDir) : modelDir, backend);
    await using reference = await loadPolicy(started ? checkpointZero(runDir) : modelDir, backend);
    const trainer = await createTrainer({
      ...trainerSettings(config),
      policy,
      reference,
      runDir,
      modelDir,
      retain: { last: keptCheckpoints },
    });
    await using stack = await createAttemptStack({
      modelDir: trainer.checkpointDir(),
      policyVersion: policyVersionOf(trainer.completedSteps()),
      harness,
      sandbox,
      store,
      seed: config.seed,
      temperature: config.temperature,
      model: manifest.model,
    });
    const result = await runTraining(
      {
        config,
        runDir,
        store,
        trainer,
        engine: stack.engine,
        admission: stack.gateway,
        attempts: stack.attempts,
        tasks,
        reference,
        ...(onEvent === undefined ? {} : { onEvent }),
      },
      signal,
    );
    const { busyMs } = await stack.engine.stats();
    const summary = await summariseRun({
      config,
      store,
      tasks,
      result,
      harness,
      samplingSeconds: busyMs / 1000,
      wallSeconds: (systemClock.nowMs() - startedAtMs) / 1000,
      runDir,
    });
    const report = await buildRunReport(config, summary, result, store);
    await writeDurably(join(runDir, "report.json"), `${JSON.stringify(summary, null, 2)}\n`);
    await writeDurably(join(runDir, "report.html"), renderReport(report));
    return summary;
  } finally {
    await store.close();
  }
}

function checkpointZero(runDir: string): string {
  return join(runDir, "checkpoints", "0");
}
