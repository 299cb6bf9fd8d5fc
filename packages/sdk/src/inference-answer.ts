/**
 * Sampling for one HTTP answer: collects ids and log-probabilities, opens streams in time, respects slow readers.
 */
import type { ServerResponse } from "node:http";
import {
  type Engine,
  type FinishReason,
  type GenerateRequest,
  GimbalError,
  systemTimerClock,
  type Usage,
} from "@gimbal-rl/core";
import { untilStopped } from "@gimbal-rl/proxy";
import type { Tokenizer } from "@gimbal-rl/renderers";

/** Headers of every event stream. */
const eventStreamHeaders: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
};

/** A stream opens after this long without a token; before that a failure still has a status of its own. */
const earlyHeadersMs = 2000;
const heartbeatMs = 10_000;
/** An engine that ignores its signal is left after this long, so that it cannot hold a request or the server's end. */
const stopWaitMs = 5000;

/** What was sampled. `ids` and `logprobs` have equal length. */
export interface SampledAnswer {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly reason: "stop" | "length";
  readonly usage: Usage;
}

/**
 * Samples to the end.
 * @param onTokens - Called per piece, in order.
 * @throws {GimbalError} what the engine throws; `aborted` when the signal or the engine stopped it.
 */
export async function sampleAnswer(
  engine: Engine,
  request: GenerateRequest,
  signal: AbortSignal,
  onTokens: (
    ids: readonly number[],
    logprobs: readonly number[],
  ) => void | Promise<void> = () => {},
): Promise<SampledAnswer> {
  const ids: number[] = [];
  const logprobs: number[] = [];
  const options = { signal, clock: systemTimerClock, stopWaitMs };
  for await (const event of untilStopped(engine.generate(request, signal), options)) {
    if (event.type === "tokens-delta") {
      ids.push(...event.ids);
      logprobs.push(...event.logprobs);
      await onTokens(event.ids, event.logprobs);
      continue;
    }
    if (event.reason === "aborted") break;
    const usage = {
      promptTokens: request.promptIds.length,
      completionTokens: ids.length,
      cachedTokens: event.cachedTokens,
    };
    return { ids, logprobs, reason: event.reason, usage };
  }
  throw new GimbalError("aborted", "The answer was stopped before it was complete.");
}

/** A stream of events to one client. */
export interface EventStream {
  /** Waits while the client is slow. */
  write(text: string): Promise<void>;
  readonly isOpen: boolean;
  /** Stops the timers. */
  close(): void;
}

/**
 * Prepares a stream: its head goes out with the first write, or after a while by itself; keep-alives follow.
 * @param opening - Text that comes first.
 */
export function createEventStream(
  response: ServerResponse,
  opening: string,
  heartbeat: string,
): EventStream {
  let isOpen = false;
  let beat: ReturnType<typeof setInterval> | null = null;
  const open = (): void => {
    if (isOpen || response.destroyed) return;
    isOpen = true;
    clearTimeout(early);
    response.writeHead(200, eventStreamHeaders);
    response.write(opening);
    beat = setInterval(() => response.write(heartbeat), heartbeatMs);
    beat.unref();
  };
  const early = setTimeout(open, earlyHeadersMs);
  early.unref();
  return {
    write: async (text) => {
      open();
      if (text === "" || response.destroyed || response.write(text)) return;
      await new Promise<void>((resolve) => {
        const done = (): void => {
          response.off("drain", done);
          response.off("close", done);
          resolve();
        };
        response.on("drain", done);
        response.on("close", done);
      });
    },
    get isOpen() {
      return isOpen;
    },
    close: () => {
      clearTimeout(early);
      if (beat !== null) clearInterval(beat);
    },
  };
}

/** One entry of `logprobs.content`, with the token's id. */
export interface LogprobEntry {
  readonly token: string;
  readonly token_id: number;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
  readonly top_logprobs: readonly never[];
}

/** Entries of `logprobs.content`. A token that is half a character has no bytes of its own. */
export function logprobEntries(
  tokenizer: Tokenizer,
  ids: readonly number[],
  logprobs: readonly number[],
): LogprobEntry[] {
  return ids.map((id, i) => {
    const token = tokenizer.decode([id]);
    return {
      token,
      token_id: id,
      logprob: logprobs[i] ?? Number.NaN,
      bytes: token.includes("\ufffd") ? null : [...new TextEncoder().encode(token)],
      top_logprobs: [],
    };
  });
}

/** Why a turn ended, once its tool calls are known. */
export function finishReasonOf(reason: "stop" | "length", toolCalls: number): FinishReason {
  return reason === "stop" && toolCalls > 0 ? "tool-calls" : reason;
}
