/**
 * An Engine that answers from a script instead of a model.
 *
 * Law: it keeps the Engine contract (one `generate-end`, last; ids and log-probabilities of equal length; stops on
 * abort), unless a turn is scripted to break it.
 */
import {
  asId,
  type Engine,
  type EngineInfo,
  type GenerateEvent,
  type GenerateRequest,
  hashToSeed,
  type PolicyVersion,
} from "@gimbal-rl/core";

/** One scripted answer. Either `text` or `ids`. */
export interface ScriptedTurn {
  /** Encoded with the engine's `encode`; special tokens allowed. The stop id is added by itself. */
  readonly text?: string;
  /** Ids verbatim; nothing is added. */
  readonly ids?: readonly number[];
  /** Default: made from the ids, all negative. */
  readonly logprobs?: readonly number[];
  /** Ids per event. Default 1. */
  readonly chunkSize?: number;
  /** Ends by itself without a stop id. Default `stop`; `length` also when the request's limit is reached. */
  readonly reason?: "stop" | "length";
  /** Throws this after `errorAfter` ids (default 0). */
  readonly error?: Error;
  readonly errorAfter?: number;
  /** Waits for this promise after `waitAfter` ids (default 0), or for the abort. */
  readonly wait?: Promise<unknown>;
  readonly waitAfter?: number;
  /** Ends without `generate-end`, which breaks the contract on purpose. */
  readonly omitEnd?: boolean;
  readonly cachedTokens?: number;
}

/** What a script function sees. */
export interface ScriptContext {
  readonly request: GenerateRequest;
  /** Calls before this one, of any session. */
  readonly callIndex: number;
  /** Calls before this one in the same session. */
  readonly sessionCallIndex: number;
}

/** Answers in order per session, or a function of the request. */
export type EngineScript = readonly ScriptedTurn[] | ((context: ScriptContext) => ScriptedTurn);

/** Options of {@link createScriptedEngine}. */
export interface ScriptedEngineOptions {
  /** Usually the `encode` of the renderer's tokenizer. */
  readonly encode: (text: string, options?: { readonly allowSpecial?: boolean }) => number[];
  readonly script: EngineScript;
  readonly info?: Partial<EngineInfo>;
}

/** The engine and what it was asked. */
export interface ScriptedEngine extends Engine {
  readonly requests: readonly GenerateRequest[];
  /** Generations running now. */
  readonly active: number;
  /** Generations that ended because their signal was aborted or their loop was left. */
  readonly aborted: number;
  setPolicyVersion(version: string): void;
}

/** Repeatable log-probabilities for ids: f32 values in [-2, 0). */
export function scriptedLogprobs(ids: readonly number[]): number[] {
  return ids.map((id, i) => Math.fround(-((hashToSeed(id, i) % 1999) + 1) / 1000));
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Makes an engine that plays a script. With a list, each session walks it from the start; past its end is an error. */
export function createScriptedEngine(options: ScriptedEngineOptions): ScriptedEngine {
  const { encode, script } = options;
  const requests: GenerateRequest[] = [];
  const sessionCalls = new Map<string, number>();
  let active = 0;
  let aborted = 0;
  let policyVersion = asId<PolicyVersion>("policy-0");

  const turnFor = (request: GenerateRequest): ScriptedTurn => {
    const session = request.sessionId ?? "";
    const sessionCallIndex = sessionCalls.get(session) ?? 0;
    sessionCalls.set(session, sessionCallIndex + 1);
    if (typeof script === "function") {
      return script({ request, callIndex: requests.length - 1, sessionCallIndex });
    }
    const turn = script[sessionCallIndex];
    if (turn === undefined) {
      throw new Error(`The script has ${script.length} turns; turn ${sessionCallIndex} was asked.`);
    }
    return turn;
  };

  async function* play(
    turn: ScriptedTurn,
    request: GenerateRequest,
    signal: AbortSignal,
  ): AsyncGenerator<GenerateEvent> {
    const stopId = request.stopIds[0];
    let reason = turn.reason ?? "stop";
    let ids = [...(turn.ids ?? encode(turn.text ?? "", { allowSpecial: true }))];
    if (turn.ids === undefined && reason === "stop" && stopId !== undefined) ids.push(stopId);
    if (ids.length > request.maxTokens) {
      ids = ids.slice(0, request.maxTokens);
      reason = "length";
    }
    const logprobs = turn.logprobs ?? scriptedLogprobs(ids);
    const chunkSize = turn.chunkSize ?? 1;
    const waited = turn.wait === undefined ? null : Promise.race([turn.wait, untilAborted(signal)]);
    for (let i = 0; i <= ids.length; i += chunkSize) {
      if (turn.error !== undefined && i >= (turn.errorAfter ?? 0)) throw turn.error;
      if (waited !== null && i >= (turn.waitAfter ?? 0)) await waited;
      if (signal.aborted) {
        yield { type: "generate-end", reason: "aborted", cachedTokens: 0 };
        return;
      }
      if (i === ids.length) break;
      yield {
        type: "tokens-delta",
        ids: ids.slice(i, i + chunkSize),
        logprobs: logprobs.slice(i, i + chunkSize),
        policyVersion,
      };
      // Lets other calls run between tokens, as a real engine does.
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (turn.omitEnd !== true) {
      yield { type: "generate-end", reason, cachedTokens: turn.cachedTokens ?? 0 };
    }
  }

  return {
    info: {
      id: "scripted",
      model: "scripted-model",
      captureMode: "tokens",
      contextLength: 8192,
      vocabularySize: 1024,
      logprobsAfterTemperature: true,
      ...options.info,
    },
    policyVersion: () => policyVersion,
    setPolicyVersion: (version) => {
      policyVersion = asId<PolicyVersion>(version);
    },
    generate: async function* (request, signal) {
      requests.push(request);
      active += 1;
      let finished = false;
      try {
        for await (const event of play(turnFor(request), request, signal)) {
          finished = event.type === "generate-end" && event.reason !== "aborted";
          yield event;
        }
      } catch (error) {
        finished = true;
        throw error;
      } finally {
        active -= 1;
        if (!finished) aborted += 1;
      }
    },
    get requests() {
      return requests;
    },
    get active() {
      return active;
    },
    get aborted() {
      return aborted;
    },
    [Symbol.asyncDispose]: async () => {},
  };
}
