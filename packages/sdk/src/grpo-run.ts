/**
 * A GRPO run from its folder: creates or continues it, trains, evaluates and writes the report.
 */
import { join } from "node:path";
import { type BackendInfo, createWasmBackend, loadPolicy } from "@gimbal-rl/compute";
import { GimbalError, type Harness, type Sandbox, systemClock } from "@gimbal-rl/core";
import { renderReport } from "@gimbal-rl/eval";
import { grpo } from "@gimbal-rl/objective";
import {
  buildRunReport,
  createUsageWriter,
  type RunConfig,
  type RunEvent,
  type RunSummary,
  readRunUsage,
  runTraining,
  summariseRun,
} from "@gimbal-rl/run";
import { openStore } from "@gimbal-rl/store";
import {
  type CreateTrainerOptions,
  createTrainer,
  findCheckpoints,
  policyVersionOf,
  replaceFile,
} from "@gimbal-rl/trainer";
import { createAttemptStack } from "./attempt-stack.js";
import { backendName } from "./backend-name.js";
import { fingerprintWeights } from "./model-fingerprint.js";
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

/** The trainer's settings as the configuration of a run says them. */
export function trainerSettings(
  config: RunConfig,
): Pick<CreateTrainerOptions, "seed" | "schedule" | "optimizer" | "objective" | "epochs"> {
  const { epochs, klCoefficient, learningRate, seed, steps, warmupSteps } = config;
  const { adamBeta2, finalLearningRateFraction, learningRateScales, maxGradientNorm, weightDecay } =
    config;
  return {
    seed,
    schedule: {
      kind: "linear",
      peak: learningRate,
      warmupSteps,
      totalSteps: steps,
      finalFraction: finalLearningRateFraction,
    },
    optimizer: { weightDecay, maxGradientNorm, beta2: adamBeta2, learningRateScales },
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
    assertSameBackend(config, backend.info);
    const started = (await findCheckpoints(runDir)).length > 0;
    if (!started) await assertStartWeights(config, modelDir);
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
      logsDir: join(runDir, "logs"),
    });
    const writeUsage = createUsageWriter(store, `${startedAtMs}-${process.pid}`);
    const saveUsage = async (): Promise<void> =>
      writeUsage({
        wallSeconds: (systemClock.nowMs() - startedAtMs) / 1000,
        samplingSeconds: (await stack.engine.stats()).busyMs / 1000,
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
        saveUsage,
        ...(onEvent === undefined ? {} : { onEvent }),
      },
      signal,
    );
    await saveUsage();
    // Over all processes, so that a resumed run does not look cheaper than it was.
    const usage = await readRunUsage(store);
    const summary = await summariseRun({ config, store, tasks, result, harness, ...usage, runDir });
    const report = await buildRunReport(config, summary, result, store);
    await replaceFile(join(runDir, "report.json"), `${JSON.stringify(summary, null, 2)}\n`);
    await replaceFile(join(runDir, "report.html"), renderReport(report));
    return summary;
  } finally {
    await store.close();
  }
}

/** A run that was killed before its first checkpoint must not continue from other weights. */
async function assertStartWeights({ facts }: RunConfig, modelDir: string): Promise<void> {
  if (facts.weights === undefined) return;
  const found = await fingerprintWeights(modelDir);
  if (found === facts.weights) return;
  throw new GimbalError(
    "config-invalid",
    `The run was made for weights ${String(facts.weights).slice(0, 12)}; ${modelDir} holds ${found.slice(0, 12)}. Give the model folder that the run was made with.`,
  );
}

/** Another variant sums in another order: the run would go on with other numbers than it began with. */
function assertSameBackend({ facts }: RunConfig, info: BackendInfo): void {
  if (facts.backend === undefined) return;
  const found = backendName(info);
  if (found === facts.backend) return;
  throw new GimbalError(
    "config-invalid",
    `The run was made with the backend ${facts.backend}; this machine offers ${found}, which computes other numbers. Continue it where ${facts.backend} is there, or start a new run.`,
  );
}

function checkpointZero(runDir: string): string {
  return join(runDir, "checkpoints", "0");
}
