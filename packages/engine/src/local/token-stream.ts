/**
 * A queue between the engine and one reader of a call's events.
 *
 * Law: events come out in the order they went in; tokens that the reader has not fetched yet are joined while their
 * policy version is the same. The first failure or end is the last thing.
 */
import type { GenerateEvent, GimbalError, PolicyVersion } from "@gimbal-rl/core";

interface OpenTokens {
  readonly type: "tokens-delta";
  readonly ids: number[];
  readonly logprobs: number[];
  readonly policyVersion: PolicyVersion;
}

/** Filled by the engine, read by one loop. */
export class TokenStream {
  readonly #queue: (OpenTokens | Extract<GenerateEvent, { type: "generate-end" }>)[] = [];
  #failure: GimbalError | null = null;
  #wake: (() => void) | null = null;

  pushTokens(
    ids: readonly number[],
    logprobs: readonly number[],
    policyVersion: PolicyVersion,
  ): void {
    const last = this.#queue[this.#queue.length - 1];
    if (last?.type === "tokens-delta" && last.policyVersion === policyVersion) {
      last.ids.push(...ids);
      last.logprobs.push(...logprobs);
    } else {
      this.#queue.push({
        type: "tokens-delta",
        ids: [...ids],
        logprobs: [...logprobs],
        policyVersion,
      });
    }
    this.#notify();
  }

  pushEnd(reason: "stop" | "length" | "aborted", cachedTokens: number): void {
    this.#queue.push({ type: "generate-end", reason, cachedTokens });
    this.#notify();
  }

  fail(error: GimbalError): void {
    this.#failure = error;
    this.#notify();
  }

  /** The next event. @throws {GimbalError} what `fail` was given, once the events before it are read. */
  async next(): Promise<GenerateEvent> {
    for (;;) {
      const event = this.#queue.shift();
      if (event !== undefined) return event;
      if (this.#failure !== null) throw this.#failure;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #notify(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
