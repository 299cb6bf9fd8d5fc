/**
 * The side of the local engine that owns the model: it runs in a worker thread, or in the caller's thread.
 *
 * Laws. One step at a time; messages are taken between steps. Weights change between calls: calls that came before
 * `load-weights` are finished first, later ones wait for the new weights. When loading fails the old weights stay.
 */
import { attributeError, GimbalError, type PolicyVersion } from "@gimbal-rl/core";
import { type LoadedModel, loadModel } from "./load-model.js";
import {
  type CallUpdate,
  errorToData,
  type HostOptions,
  type HostReply,
  type HostRequest,
} from "./protocol.js";
import { Scheduler } from "./scheduler.js";
import type { CallSink } from "./sequence.js";

/** Receives requests in order; answers through the `post` it was made with. */
export interface ModelHost {
  receive(message: HostRequest): void;
}

type Deferred = Extract<HostRequest, { type: "generate" | "load-weights" | "close" }>;

/** What a host may be given instead of the real thing. */
export interface ModelHostOptions {
  /** Loads the model. Default {@link loadModel}. */
  readonly load?: (options: HostOptions) => Promise<LoadedModel>;
}

/** @param post - Sends an answer to the caller's side. */
export function createModelHost(
  post: (reply: HostReply) => void,
  { load = loadModel }: ModelHostOptions = {},
): ModelHost {
  return new Host(post, load);
}

class Host implements ModelHost {
  readonly #post: (reply: HostReply) => void;
  readonly #load: (options: HostOptions) => Promise<LoadedModel>;
  readonly #aborts: Map<number, () => void> = new Map();
  #updates: CallUpdate[] = [];
  /** Requests that wait for a weight change to finish, in order. */
  #deferred: Deferred[] = [];
  #model: LoadedModel | null = null;
  #scheduler: Scheduler | null = null;
  #running = false;

  constructor(
    post: (reply: HostReply) => void,
    load: (options: HostOptions) => Promise<LoadedModel>,
  ) {
    this.#post = post;
    this.#load = load;
  }

  receive(message: HostRequest): void {
    switch (message.type) {
      case "start":
        void this.#start(message.options);
        return;
      case "abort":
        this.#abort(message.call);
        return;
      case "stats":
        this.#withScheduler(message.task, (scheduler) =>
          this.#post({ type: "stats", task: message.task, stats: scheduler.stats() }),
        );
        return;
      case "close":
        // Nothing that waits is of use any more; it is taken after the closing and refused.
        this.#deferred.unshift(message);
        this.#wake();
        return;
      case "generate":
      case "load-weights":
        this.#deferred.push(message);
        this.#wake();
        return;
      default:
        message satisfies never;
    }
  }

  async #start(options: HostOptions): Promise<void> {
    try {
      const model = await this.#load(options);
      const { policy, slots } = model;
      this.#model = model;
      const scheduler = new Scheduler({
        policy,
        policyVersion: options.policyVersion,
        slots,
        maxRunning: options.maxRunning,
        prefillRows: options.prefillRows,
        nowMs: () => performance.now(),
      });
      this.#scheduler = scheduler;
      const { id, variant, threads } = policy.backend.info;
      this.#post({
        type: "started",
        info: { ...scheduler.limits, slots, backendId: id, backendVariant: variant, threads },
      });
    } catch (error) {
      const failure = attributeError(error, "engine-failed", "compute", "The engine did not start");
      this.#post({ type: "start-failed", error: errorToData(failure) });
    }
  }

  #wake(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  /** Takes requests and steps until there is nothing to do. */
  async #run(): Promise<void> {
    try {
      do {
        await this.#takeDeferred();
        await this.#scheduler?.step();
        this.#flush();
        await nextTurn();
      } while (this.#deferred.length > 0 || this.#scheduler?.idle === false);
    } finally {
      this.#running = false;
    }
  }

  /** Takes requests in order, up to a weight change that must wait for calls in flight. */
  async #takeDeferred(): Promise<void> {
    for (let next = this.#deferred[0]; next !== undefined; next = this.#deferred[0]) {
      const scheduler = this.#scheduler;
      if (next.type === "load-weights" && scheduler?.idle === false) return;
      this.#deferred.shift();
      if (next.type === "generate") this.#generate(next.call, next.request);
      else if (next.type === "close") await this.#close(next.task);
      else await this.#loadWeights(next.task, next.modelDir, next.policyVersion);
    }
  }

  #generate(call: number, request: Extract<HostRequest, { type: "generate" }>["request"]): void {
    const scheduler = this.#scheduler;
    try {
      if (scheduler === null) throw closedError();
      this.#aborts.set(call, scheduler.submit(request, this.#sink(call)));
    } catch (error) {
      const failure = attributeError(error, "engine-failed", "compute", "The call was not taken");
      this.#updates.push({ type: "failed", call, error: errorToData(failure) });
    }
  }

  #abort(call: number): void {
    const waiting = this.#deferred.findIndex(
      (message) => message.type === "generate" && message.call === call,
    );
    if (waiting >= 0) {
      this.#deferred.splice(waiting, 1);
      this.#updates.push({ type: "end", call, reason: "aborted", cachedTokens: 0 });
    } else this.#aborts.get(call)?.();
    this.#flush();
  }

  async #loadWeights(task: number, modelDir: string, policyVersion: PolicyVersion): Promise<void> {
    try {
      const model = this.#model;
      const scheduler = this.#scheduler;
      if (model === null || scheduler === null) throw closedError();
      await model.replaceWeights(modelDir);
      scheduler.weightsReplaced(policyVersion);
      this.#post({ type: "weights-loaded", task, policyVersion });
    } catch (error) {
      const context = `The weights in ${modelDir} were not loaded; the engine keeps the old ones`;
      const failure = attributeError(error, "model-invalid", "compute", context);
      this.#post({ type: "task-failed", task, error: errorToData(failure) });
    }
  }

  async #close(task: number): Promise<void> {
    try {
      this.#scheduler?.failAll(closedError());
      this.#flush();
      this.#scheduler?.dispose();
      this.#scheduler = null;
      const model = this.#model;
      this.#model = null;
      await model?.dispose();
      this.#post({ type: "closed", task });
    } catch (error) {
      const failure = attributeError(error, "engine-failed", "compute", "Closing failed");
      this.#post({ type: "task-failed", task, error: errorToData(failure) });
    }
  }

  #withScheduler(task: number, use: (scheduler: Scheduler) => void): void {
    if (this.#scheduler !== null) use(this.#scheduler);
    else this.#post({ type: "task-failed", task, error: errorToData(closedError()) });
  }

  #sink(call: number): CallSink {
    return {
      token: (id, logprob, policyVersion) => {
        this.#updates.push({ type: "tokens", call, ids: [id], logprobs: [logprob], policyVersion });
      },
      end: (reason, cachedTokens) => {
        this.#aborts.delete(call);
        this.#updates.push({ type: "end", call, reason, cachedTokens });
      },
      fail: (error) => {
        this.#aborts.delete(call);
        this.#updates.push({ type: "failed", call, error: errorToData(error) });
      },
    };
  }

  #flush(): void {
    if (this.#updates.length === 0) return;
    const updates = this.#updates;
    this.#updates = [];
    this.#post({ type: "events", updates });
  }
}

function closedError(): GimbalError {
  return new GimbalError("unavailable", "The local engine is closed. Create a new one.");
}

/** Lets messages in: a step may take milliseconds, and aborts and new calls must not wait for the batch to drain. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
