/**
 * Attempts without training: a task list through a harness with one model folder, stored and resumable.
 */
import { join } from "node:path";
import { asId, type Harness, type PolicyVersion, type Sandbox, type Task } from "@gimbal-rl/core";
import { runSuite, type SuiteResult } from "@gimbal-rl/eval";
import type { AttemptRecord } from "@gimbal-rl/rollout";
import { openStore } from "@gimbal-rl/store";
import { createAttemptStack } from "./attempt-stack.js";
import { fingerprintWeights } from "./model-fingerprint.js";
import { modelNameOf } from "./model-name.js";
import { assertSameSettings } from "./suite-settings.js";

/** Options of {@link runTasks}. */
export interface RunTasksOptions {
  /** Where calls and attempts are stored; attempts that are there already are not run again. */
  readonly runDir: string;
  readonly modelDir: string;
  /** Prepared. */
  readonly harness: Harness;
  readonly sandbox: Sandbox;
  readonly tasks: readonly Task[];
  /** Attempts per task. */
  readonly samples: number;
  readonly seed: number;
  readonly temperature: number;
  readonly concurrency: number;
  /** Names the attempts. Default `rollout`. */
  readonly label?: string;
  /** Name of the weights; stamped on every sampled token. Default `initial`. */
  readonly policyVersion?: PolicyVersion;
  readonly onAttempt?: (record: AttemptRecord, done: number, total: number) => void;
}

/**
 * Runs every task `samples` times.
 * @throws {GimbalError} `model-invalid`, `store-unwritable`, `store-corrupt`, `aborted`, an infrastructure failure;
 * `config-invalid` when the folder holds attempts of this label that were made with other settings.
 */
export async function runTasks(
  options: RunTasksOptions,
  signal: AbortSignal,
): Promise<SuiteResult> {
  const { concurrency, harness, modelDir, onAttempt, sandbox, seed, temperature } = options;
  const policyVersion = options.policyVersion ?? asId<PolicyVersion>("initial");
  const label = options.label ?? "rollout";
  const store = await openStore(options.runDir);
  try {
    await assertSameSettings(store, label, options.runDir, {
      weights: await fingerprintWeights(modelDir),
      harness: `${harness.id} ${harness.version}`,
      seed,
      temperature,
    });
    await using stack = await createAttemptStack({
      ...{ modelDir, policyVersion, harness, sandbox, store, seed, temperature },
      model: modelNameOf(modelDir),
      logsDir: join(options.runDir, "logs"),
    });
    return await runSuite(
      {
        label,
        tasks: options.tasks,
        samples: options.samples,
        seed,
        policyVersion,
        collect: {
          dependencies: stack.attempts,
          store,
          concurrency,
          training: true,
          ...(onAttempt === undefined ? {} : { onAttempt }),
        },
      },
      signal,
    );
  } finally {
    await store.close();
  }
}
