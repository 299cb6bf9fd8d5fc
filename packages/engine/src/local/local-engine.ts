/**
 * The `local` engine: our own sampler over `compute`, in a worker thread with its own event loop.
 *
 * Laws. The caller's thread never computes. A call's result depends on its request and the weights alone. When the
 * worker dies, every call fails with `engine-failed`, and so do later ones.
 */
import {
  asId,
  type EngineInfo,
  type GenerateEvent,
  type GenerateRequest,
  GimbalError,
  type PolicyVersion,
  type TrainableEngine,
} from "@gimbal-rl/core";
import { createInProcessChannel, createWorkerChannel, type HostChannel } from "./host-channel.js";
import { HostConnection } from "./host-connection.js";
import type { HostInfo, LocalBackendId } from "./protocol.js";
import { checkRequest } from "./sequence.js";
import type { SamplerStats } from "./stats.js";

/** Options of {@link createLocalEngine}. */
export interface LocalEngineOptions {
  /** Hugging Face model folder: `config.json` and `model.safetensors`. */
  readonly modelDir: string;
  /** Name shown as `info.model`. Default: the folder's name. */
  readonly model?: string;
  /** `wasm` (default) or the slow plain `reference`. */
  readonly backend?: LocalBackendId;
  /** Threads of the WASM backend. Default 1. */
  readonly threads?: number;
  /** Tokens whose keys and values are kept at once. Default: what fits 512 MB, at most 65536. */
  readonly slots?: number;
  /** Calls that run at once; further ones wait. Default 64. */
  readonly maxRunning?: number;
  /** Prompt rows computed in one step. Default 256. */
  readonly prefillRows?: number;
  /** Version of the weights in `modelDir`. Default `initial`. */
  readonly policyVersion?: PolicyVersion;
  /** Runs the model in the caller's thread: for tests and where there are no workers. */
  readonly inProcess?: boolean;
}

/** A {@link TrainableEngine} with counters. */
export interface LocalEngine extends TrainableEngine {
  /** Slots, backend and threads in use. */
  readonly host: HostInfo;
  /** Counters since the start, and the present load. */
  stats(): Promise<SamplerStats>;
  /** Why the engine no longer works; null while it does. */
  failure(): GimbalError | null;
}

/**
 * Loads a model and starts sampling.
 * @throws {GimbalError} `config-invalid` for a count that is no whole number of at least 1, `model-invalid` when the folder is not a complete model, `engine-failed`.
 */
export async function createLocalEngine(options: LocalEngineOptions): Promise<LocalEngine> {
  const channel = options.inProcess ? createInProcessChannel() : await createWorkerChannel();
  return connectLocalEngine(options, channel);
}

/** Starts an engine behind a channel; `createLocalEngine` chooses the channel. */
export async function connectLocalEngine(
  options: LocalEngineOptions,
  channel: HostChannel,
): Promise<LocalEngine> {
  const policyVersion = options.policyVersion ?? asId<PolicyVersion>("initial");
  const connection = new HostConnection(channel);
  try {
    checkOptions(options);
    const info = await connection.start({
      type: "start",
      options: {
        modelDir: options.modelDir,
        backend: options.backend ?? "wasm",
        threads: options.threads ?? 1,
        slots: options.slots ?? null,
        maxRunning: options.maxRunning ?? 64,
        prefillRows: options.prefillRows ?? 256,
        policyVersion,
      },
    });
    const model = options.model ?? folderName(options.modelDir);
    return new WorkerEngine(connection, info, model, policyVersion);
  } catch (error) {
    await channel.close();
    throw error;
  }
}

class WorkerEngine implements LocalEngine {
  readonly info: EngineInfo;
  readonly host: HostInfo;
  readonly #connection: HostConnection;
  #policyVersion: PolicyVersion;

  constructor(
    connection: HostConnection,
    host: HostInfo,
    model: string,
    policyVersion: PolicyVersion,
  ) {
    this.#connection = connection;
    this.host = host;
    this.#policyVersion = policyVersion;
    this.info = {
      id: "local",
      model,
      captureMode: "tokens",
      contextLength: host.contextLength,
      vocabularySize: host.vocabularySize,
      logprobsAfterTemperature: true,
    };
  }

  policyVersion(): PolicyVersion {
    return this.#policyVersion;
  }

  failure(): GimbalError | null {
    return this.#connection.failure;
  }

  async *generate(request: GenerateRequest, signal: AbortSignal): AsyncIterable<GenerateEvent> {
    checkRequest(request, this.info);
    if (signal.aborted) {
      yield { type: "generate-end", reason: "aborted", cachedTokens: 0 };
      return;
    }
    const { call, stream } = this.#connection.openCall(request);
    const abort = (): void => this.#connection.abort(call);
    signal.addEventListener("abort", abort, { once: true });
    try {
      for (;;) {
        const event = await stream.next();
        yield event;
        if (event.type === "generate-end") return;
      }
    } finally {
      signal.removeEventListener("abort", abort);
      abort();
    }
  }

  async loadWeights(modelDir: string, policyVersion: PolicyVersion): Promise<void> {
    await this.#connection.task((task) => ({
      type: "load-weights",
      task,
      modelDir,
      policyVersion,
    }));
    this.#policyVersion = policyVersion;
  }

  async stats(): Promise<SamplerStats> {
    const reply = await this.#connection.task((task) => ({ type: "stats", task }));
    if (reply.type !== "stats") throw new Error(`expected stats, got ${reply.type}`);
    return reply.stats;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#connection.close();
  }
}

const counts = ["threads", "slots", "maxRunning", "prefillRows"] as const;

/** With a count of 0 nothing would ever be sampled, and the worker would spin. */
function checkOptions(options: LocalEngineOptions): void {
  for (const name of counts) {
    const value = options[name];
    if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) continue;
    throw new GimbalError(
      "config-invalid",
      `Engine option ${name} is ${value}, expected a whole number of at least 1. Leave it out for the default.`,
      { details: { option: name } },
    );
  }
}

function folderName(path: string): string {
  const parts = path.split(/[\\/]/).filter((part) => part !== "");
  return parts[parts.length - 1] ?? path;
}
