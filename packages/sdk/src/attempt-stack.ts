/**
 * Everything between a policy folder and an attempt, wired: engine, renderer, gateway, sandbox, verifiers.
 */
import { tmpdir } from "node:os";
import {
  type Harness,
  type PolicyVersion,
  type Sandbox,
  type SandboxLevel,
  type Store,
  systemTimerClock,
} from "@gimbal-rl/core";
import { openAiChat } from "@gimbal-rl/dialects";
import { createLocalEngine, type LocalEngine } from "@gimbal-rl/engine";
import { defaultCacheDir } from "@gimbal-rl/harness-pi";
import { createGateway, type Gateway } from "@gimbal-rl/proxy";
import { createTape, type Renderer } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import type { AttemptDependencies } from "@gimbal-rl/rollout";
import { createSandbox } from "@gimbal-rl/sandbox";
import { createVerifiers } from "@gimbal-rl/verifiers";
import { sessionTrajectory } from "./session-trajectory.js";
import { stablePathRules } from "./stable-paths.js";

/** Options of {@link createAttemptStack}. */
export interface AttemptStackOptions {
  /** Hugging Face model folder. */
  readonly modelDir: string;
  readonly policyVersion: PolicyVersion;
  readonly harness: Harness;
  /** A sandbox made before, for example the one a harness was warmed up in; else one is made. */
  readonly sandbox?: Sandbox;
  readonly sandboxLevel?: "auto" | SandboxLevel;
  readonly store: Store;
  /** Seed of the run: with the attempt and the prompt it decides every sampled token. */
  readonly seed: number;
  readonly temperature: number;
  /** Model name on the wire; `modelNameOf` gives the usual one. */
  readonly model: string;
  /** Sampler threads. Default 1. */
  readonly threads?: number;
  readonly maxOutputTokens?: number;
  /** Wall clock of attempts whose task sets none. Default 120 s. */
  readonly wallClockMs?: number;
  /** Where the logs of attempts without full score are kept. Default: nowhere. */
  readonly logsDir?: string;
  readonly onCaptureError?: (error: Error) => void;
}

/** A wired stack; dispose it to stop the servers and the sampler. */
export interface AttemptStack {
  readonly engine: LocalEngine;
  readonly gateway: Gateway;
  readonly renderer: Renderer;
  readonly attempts: AttemptDependencies;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Wires a stack.
 * @throws {GimbalError} `model-invalid`, `template-unsupported`, `unavailable` (sandbox level), `port-in-use`.
 */
export async function createAttemptStack(options: AttemptStackOptions): Promise<AttemptStack> {
  const { harness, model, modelDir, policyVersion, seed, store, temperature } = options;
  const sandbox = options.sandbox ?? createSandbox({ level: options.sandboxLevel ?? "auto" });
  const renderer = await loadRendererFromFolder(modelDir);
  const engine = await createLocalEngine({
    modelDir,
    model,
    policyVersion,
    threads: options.threads ?? 1,
  });
  try {
    const gateway = await createGateway({
      engine,
      renderer,
      createTape,
      dialects: [openAiChat],
      store,
      seed,
      volatileRules: stablePathRules(tmpdir(), defaultCacheDir()),
      buildTrajectory: sessionTrajectory,
      ...(options.onCaptureError === undefined ? {} : { onCaptureError: options.onCaptureError }),
    });
    const attempts: AttemptDependencies = {
      sessions: gateway,
      harness,
      sandbox,
      verifiers: createVerifiers({ nodePath: process.execPath }),
      clock: systemTimerClock,
      model,
      contextTokens: engine.info.contextLength,
      maxOutputTokens: options.maxOutputTokens ?? 512,
      // Far above what an agent says in an honest attempt, far below what hurts.
      maxOutputBytes: 8 * 1024 * 1024,
      wallClockMs: options.wallClockMs ?? 120_000,
      temperature,
      ...(options.logsDir === undefined ? {} : { logsDir: options.logsDir }),
    };
    return {
      engine,
      gateway,
      renderer,
      attempts,
      [Symbol.asyncDispose]: async () => {
        await gateway[Symbol.asyncDispose]();
        await engine[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await engine[Symbol.asyncDispose]();
    throw error;
  }
}
