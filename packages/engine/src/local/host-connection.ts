/**
 * The caller's end of a channel to the model host: matches replies with calls and tasks.
 *
 * Law: every call and task ends exactly once, also when the other side dies or is closed.
 */
import { type GenerateRequest, GimbalError } from "@gimbal-rl/core";
import type { HostChannel } from "./host-channel.js";
import { dataToError, type HostInfo, type HostReply, type HostRequest } from "./protocol.js";
import { TokenStream } from "./token-stream.js";

/** Calls and tasks over one channel. */
export class HostConnection {
  readonly #channel: HostChannel;
  readonly #streams: Map<number, TokenStream> = new Map();
  readonly #tasks: Map<
    number,
    { resolve(reply: HostReply): void; reject(error: GimbalError): void }
  > = new Map();
  #start: { resolve(info: HostInfo): void; reject(error: GimbalError): void } | null = null;
  #numbers = 0;
  failure: GimbalError | null = null;

  constructor(channel: HostChannel) {
    this.#channel = channel;
    channel.listen(
      (reply) => this.#receive(reply),
      (error) => this.#fail(error),
    );
  }

  start(message: Extract<HostRequest, { type: "start" }>): Promise<HostInfo> {
    return new Promise((resolve, reject) => {
      this.#start = { resolve, reject };
      if (this.failure !== null) reject(this.failure);
      else this.#post(message);
    });
  }

  openCall(request: GenerateRequest): { call: number; stream: TokenStream } {
    if (this.failure !== null) throw this.failure;
    this.#numbers += 1;
    const call = this.#numbers;
    const stream = new TokenStream();
    this.#streams.set(call, stream);
    this.#post({ type: "generate", call, request });
    return { call, stream };
  }

  /** Stops a call; its `aborted` end still comes to a stream that is not forgotten. */
  abort(call: number): void {
    if (this.#streams.has(call)) this.#post({ type: "abort", call });
  }

  task(make: (task: number) => HostRequest): Promise<HostReply> {
    if (this.failure !== null) return Promise.reject(this.failure);
    this.#numbers += 1;
    const task = this.#numbers;
    return new Promise((resolve, reject) => {
      this.#tasks.set(task, { resolve, reject });
      this.#post(make(task));
    });
  }

  /** Closes in order; everything still open fails as unavailable. */
  async close(): Promise<void> {
    if (this.failure === null) {
      try {
        await this.task((task) => ({ type: "close", task }));
      } catch {
        // It died while closing: closed is what was asked for.
      }
      this.#fail(new GimbalError("unavailable", "The local engine is closed. Create a new one."));
    }
    await this.#channel.close();
  }

  #post(message: HostRequest): void {
    this.#channel.post(message);
    this.#channel.keepAlive(true);
  }

  #receive(reply: HostReply): void {
    switch (reply.type) {
      case "started":
        this.#start?.resolve(reply.info);
        this.#start = null;
        break;
      case "start-failed":
        this.#start?.reject(dataToError(reply.error));
        this.#start = null;
        break;
      case "events":
        for (const update of reply.updates) this.#update(update);
        break;
      case "weights-loaded":
      case "stats":
      case "closed":
        this.#tasks.get(reply.task)?.resolve(reply);
        this.#tasks.delete(reply.task);
        break;
      case "task-failed":
        this.#tasks.get(reply.task)?.reject(dataToError(reply.error));
        this.#tasks.delete(reply.task);
        break;
      default:
        reply satisfies never;
    }
    if (this.#streams.size === 0 && this.#tasks.size === 0 && this.#start === null) {
      this.#channel.keepAlive(false);
    }
  }

  #update(update: Extract<HostReply, { type: "events" }>["updates"][number]): void {
    const stream = this.#streams.get(update.call);
    if (stream === undefined) return;
    if (update.type === "tokens") {
      stream.pushTokens(update.ids, update.logprobs, update.policyVersion);
      return;
    }
    this.#streams.delete(update.call);
    if (update.type === "end") stream.pushEnd(update.reason, update.cachedTokens);
    else stream.fail(dataToError(update.error));
  }

  #fail(error: GimbalError): void {
    if (this.failure !== null) return;
    this.failure = error;
    this.#start?.reject(error);
    this.#start = null;
    for (const stream of this.#streams.values()) stream.fail(error);
    for (const task of this.#tasks.values()) task.reject(error);
    this.#streams.clear();
    this.#tasks.clear();
  }
}
