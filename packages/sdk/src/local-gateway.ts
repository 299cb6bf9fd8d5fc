/**
 * The gateway over a model folder, wired: engine, renderer, tape, dialects, trajectories.
 */
import type { Store } from "@gimbal-rl/core";
import { openAiChat } from "@gimbal-rl/dialects";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { createGateway, type Gateway } from "@gimbal-rl/proxy";
import { createTape } from "@gimbal-rl/renderers";
import { type LocalModel, type OpenLocalModelOptions, openLocalModel } from "./local-model.js";
import { modelNameOf } from "./model-name.js";
import { sessionTrajectory } from "./session-trajectory.js";

/** Options of {@link createLocalGateway}; everything has a default. */
export interface LocalGatewayOptions extends OpenLocalModelOptions {
  /** Hugging Face model folder. Default: the bundled tiny policy. */
  readonly modelDir?: string;
  /** Where calls and raw bodies are kept. Default: in memory only. */
  readonly store?: Store;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly dataPort?: number;
  readonly controlPort?: number;
  /** Default: random. */
  readonly controlToken?: string;
  /** Seed of sampling. Default 0. */
  readonly seed?: number;
  /** Sampling temperature of sessions that do not say. Default 1. */
  readonly temperature?: number;
  readonly onCaptureError?: (error: Error) => void;
}

/** A gateway with its model; disposing it stops both. */
export interface LocalGateway extends Omit<LocalModel, typeof Symbol.asyncDispose> {
  readonly gateway: Gateway;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a gateway over a model folder.
 * @throws {GimbalError} `model-invalid`, `template-unsupported`, `engine-failed`, `port-in-use`, `config-invalid`.
 * @example
 * await using local = await createLocalGateway();
 * const { sessionId, key, baseUrls } = local.gateway.createSession({ training: true });
 */
export async function createLocalGateway(options: LocalGatewayOptions = {}): Promise<LocalGateway> {
  const { modelDir = tinyModelDir, model, temperature, threads, ...rest } = options;
  const opened = await openLocalModel(modelDir, {
    ...(threads === undefined ? {} : { threads }),
    model: model ?? modelNameOf(modelDir),
  });
  try {
    const gateway = await createGateway({
      ...rest,
      engine: opened.engine,
      renderer: opened.renderer,
      createTape,
      dialects: [openAiChat],
      buildTrajectory: sessionTrajectory,
      ...(temperature === undefined ? {} : { sampling: { temperature } }),
    });
    return {
      gateway,
      engine: opened.engine,
      renderer: opened.renderer,
      [Symbol.asyncDispose]: async () => {
        await gateway[Symbol.asyncDispose]();
        await opened[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}
