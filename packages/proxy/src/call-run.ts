/**
 * One model call from admission to its record. It runs on its own; clients attach to it and may come and go.
 *
 * Law: whatever happens to clients, engine or store, the run ends once, frees its timers and its place at the gate, and
 * leaves one record. Streaming or not, the same ids leave the same record.
 */
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import {
  type AssistantMessage,
  attributeError,
  type CallId,
  type CapturedCall,
  type FinishReason,
  GimbalError,
  type TurnEvent,
} from "@gimbal-rl/core";
import {
  createCompleteTurn,
  type Dialect,
  type StreamWriter,
  type WriterOptions,
} from "@gimbal-rl/dialects";
import type { OutputParser, ParsedTurn } from "@gimbal-rl/renderers";
import { buildCapturedCall, SampledTokens } from "./call-record.js";
import type { GatewayCore } from "./gateway-core.js";
import type { PreparedCall } from "./prepare-call.js";
import { ReplayOutput } from "./replay-output.js";
import { sendOutput } from "./send-output.js";
import type { Session } from "./session.js";
import { untilStopped } from "./until-stopped.js";
import { toWireError } from "./wire-error.js";

/** Without streaming a slow answer starts with blanks after this long, because clients give up on silent connections. */
const plainHeadersMs = 30_000;

/** An engine that was told to stop has this long to do so before it is left alone: a step of a large prompt on slow cores. */
const stopWaitMs = 5000;

/** Failures that are not the doing of whoever called. A foreign exception counts as the first. */
const engineFaults: ReadonlySet<string> = new Set(["engine-failed", "timeout", "unavailable"]);

/** What a run is made from. */
export interface CallRunInit {
  readonly core: GatewayCore;
  readonly session: Session;
  readonly dialect: Dialect;
  readonly prepared: PreparedCall;
  readonly requestBody: Uint8Array;
  readonly retryOf: CallId | null;
}

/** How a turn ended, for the record. */
interface EndedTurn {
  readonly reason: FinishReason;
  readonly message: AssistantMessage | null;
  readonly malformed: boolean;
}

/** A call in flight, or finished and waiting to be delivered. */
export class CallRun {
  readonly callId: CallId;
  readonly output: ReplayOutput = new ReplayOutput();
  /** Resolves when the run has ended and its record exists; never rejects. */
  readonly settled: Promise<void>;
  clients = 0;
  readonly #init: CallRunInit;
  readonly #index: number;
  readonly #startedAtMs: number;
  readonly #abort = new AbortController();
  readonly #writerOptions: WriterOptions;
  readonly #writer: StreamWriter;
  readonly #parser: OutputParser;
  readonly #tokens = new SampledTokens();
  /** What was parsed, once the turn has ended. */
  #message: AssistantMessage | null = null;
  /** Why it was stopped, as the clients should see it. */
  #stopped: GimbalError | null = null;
  #cancelGrace: () => void = () => {};
  #cancelHeaders: () => void = () => {};
  #lastTokenAtMs: number;

  constructor(init: CallRunInit) {
    this.#init = init;
    const { core, session, dialect, prepared } = init;
    this.#startedAtMs = core.clock.nowMs();
    this.#lastTokenAtMs = this.#startedAtMs;
    this.#index = session.admitCall(this.#startedAtMs);
    this.callId = session.callIdAt(this.#index);
    this.#writerOptions = {
      responseId: hexOf(prepared.identity),
      model: prepared.request.model,
      createdAt: Math.floor(this.#startedAtMs / 1000),
      promptTokens: prepared.plan.promptIds.length,
      includeUsage: prepared.request.includeUsage,
    };
    this.#writer = dialect.createStreamWriter(this.#writerOptions);
    let minted = 0;
    this.#parser = core.renderer.createOutputParser({
      conversation: prepared.conversation,
      mintToolCallId: () => {
        minted += 1;
        return `call_${hexOf(`${prepared.identity}/${minted}`)}`;
      },
    });
    this.output.heartbeat = prepared.request.stream ? () => this.#writer.heartbeat() : () => " ";
    session.runs.add(this);
    core.metrics.add("calls");
    this.settled = this.#run();
  }

  /** Serves one client from the start of the answer; resolves when it is served or gone. */
  async attach(response: ServerResponse): Promise<void> {
    const { core } = this.#init;
    this.clients += 1;
    this.#cancelGrace();
    let delivered = false;
    try {
      delivered = await sendOutput(this.output, response, core.send);
    } finally {
      this.clients -= 1;
      this.#detach(delivered);
    }
  }

  #detach(delivered: boolean): void {
    const { core, session } = this.#init;
    if (delivered) session.retries.remove(this);
    else if (this.clients === 0 && !this.output.isEnded) {
      this.#cancelGrace = core.clock.schedule(core.disconnectGraceMs, () =>
        this.stop(new GimbalError("aborted", "The client left before the answer was complete.")),
      );
    }
  }

  /** Stops sampling; clients that are still there get the reason. */
  stop(reason: GimbalError): void {
    this.#stopped ??= reason;
    this.#abort.abort();
  }

  async #run(): Promise<void> {
    const { core, session } = this.#init;
    const { reason, failure } = await this.#generate();
    let turn: EndedTurn = { reason: "error", message: null, malformed: false };
    try {
      turn = this.#finishTurn(reason, failure);
    } catch (error) {
      turn = { ...turn, message: this.#message };
      this.#breakOff(error);
    }
    session.runs.delete(this);
    try {
      this.#account(turn.reason);
      core.capture(session, this.#record(turn), this.#init.requestBody, this.output.text());
    } catch (error) {
      core.captureFailed(session, error);
    }
  }

  /** Waits at the gate and samples; whatever happens, timers and the place at the gate are free afterwards. */
  async #generate(): Promise<{ readonly reason: FinishReason; readonly failure: unknown }> {
    const { core, prepared } = this.#init;
    const { stream } = prepared.request;
    this.#cancelHeaders = core.clock.schedule(stream ? core.earlyHeadersMs : plainHeadersMs, () =>
      this.#openEarly(),
    );
    let leaveGate: () => void = () => {};
    let cancelWatch: () => void = () => {};
    let reason: FinishReason = "error";
    let failure: unknown = null;
    try {
      leaveGate = await core.gate.enter(this.#abort.signal);
      cancelWatch = this.#watchEngine();
      reason = await this.#sample();
    } catch (error) {
      failure = error;
    }
    if (this.#stopped !== null) {
      reason = "aborted";
      failure = this.#stopped;
    }
    if (reason === "aborted")
      failure ??= new GimbalError("aborted", "The engine stopped the call.");
    cancelWatch();
    this.#cancelHeaders();
    leaveGate();
    this.#cancelGrace();
    return { reason, failure };
  }

  #record(turn: EndedTurn): CapturedCall {
    const { core, session, prepared } = this.#init;
    return buildCapturedCall({
      callId: this.callId,
      index: this.#index,
      session,
      dialect: this.#init.dialect.id,
      engine: core.engine.info,
      prepared,
      tokens: this.#tokens,
      message: turn.message,
      malformed: turn.malformed,
      finishReason: turn.reason,
      retryOf: this.#init.retryOf,
      startedAtMs: this.#startedAtMs,
      endedAtMs: core.clock.nowMs(),
    });
  }

  async #sample(): Promise<FinishReason> {
    const { core, session, prepared } = this.#init;
    const events = core.engine.generate(
      {
        promptIds: prepared.plan.promptIds,
        maxTokens: prepared.maxTokens,
        sampling: prepared.sampling,
        stopIds: prepared.stopIds,
        seed: prepared.seed,
        sessionId: session.init.sessionId,
      },
      this.#abort.signal,
    );
    const { signal } = this.#abort;
    let isCut = false;
    try {
      for await (const event of untilStopped(events, { signal, clock: core.clock, stopWaitMs })) {
        if (event.type === "generate-end") {
          this.#tokens.cachedTokens = event.cachedTokens;
          return isCut ? "length" : event.reason;
        }
        if (isCut) continue;
        const nowMs = core.clock.nowMs();
        this.#lastTokenAtMs = nowMs;
        // Parallel calls of one session share its budget, so the check is per token, not only at the start.
        const asked = prepared.maxTokens - this.#tokens.ids.length;
        const room = Math.min(asked, session.tokensLeft());
        const ids = event.ids.slice(0, room);
        if (event.ids.length > asked) this.#tokens.limitIgnored = true;
        const logprobs =
          ids.length < event.ids.length ? event.logprobs.slice(0, room) : event.logprobs;
        this.#tokens.add(ids, logprobs, core.stampVersion(event.policyVersion), nowMs);
        session.sampledTokens += ids.length;
        this.#emit(this.#parser.push(ids));
        if (ids.length === event.ids.length) continue;
        // No more tokens are wanted; the end still says how much of the prompt was cached.
        isCut = true;
        this.#abort.abort();
      }
    } catch (error) {
      // An engine may answer the abort that follows a cut with an exception.
      if (!isCut) throw error;
    }
    if (isCut) return "length";
    throw new GimbalError("engine-failed", "The engine ended a generation without saying why.");
  }

  /** Gives up on an engine that sends nothing: a hung engine must not hold a session for ever. */
  #watchEngine(): () => void {
    const { core } = this.#init;
    let cancel: () => void = () => {};
    const arm = (delayMs: number): void => {
      cancel = core.clock.schedule(delayMs, () => {
        const silentMs = core.clock.nowMs() - this.#lastTokenAtMs;
        if (silentMs < core.limits.stalledEngineMs) arm(core.limits.stalledEngineMs - silentMs);
        else this.stop(new GimbalError("timeout", `The engine sent no token for ${silentMs} ms.`));
      });
    };
    this.#lastTokenAtMs = core.clock.nowMs();
    arm(core.limits.stalledEngineMs);
    return () => cancel();
  }

  /** The timer's way to open: an answer that cannot even start is stopped, because nobody catches a timer's exception. */
  #openEarly(): void {
    try {
      this.#openOutput();
    } catch (error) {
      this.stop(attributeError(error, "engine-failed", "upstream", "The answer cannot be written"));
    }
  }

  #openOutput(): void {
    if (this.output.head !== null) return;
    this.#cancelHeaders();
    if (this.#init.prepared.request.stream) {
      this.output.start({ status: 200, headers: this.#writer.headers });
      this.output.write(this.#writer.start());
    } else {
      this.output.start({ status: 200, headers: { "content-type": "application/json" } });
    }
  }

  #emit(events: readonly TurnEvent[]): void {
    if (!this.#init.prepared.request.stream || events.length === 0) return;
    this.#openOutput();
    this.output.write(events.map((event) => this.#writer.event(event)).join(""));
  }

  /** Ends parser, tape and answer; returns what the record needs. */
  #finishTurn(engineReason: FinishReason, failure: unknown): EndedTurn {
    let turn: ParsedTurn | null = null;
    let error = failure;
    let reason = engineReason;
    if (this.#tokens.ids.length > 0 || error === null) {
      try {
        const rest = this.#parser.end(reason);
        turn = rest.turn;
        this.#message = turn.message;
        if (error === null) this.#emit(rest.events);
      } catch (thrown) {
        error ??= thrown;
        reason = "error";
      }
    }
    if (reason === "stop" && turn !== null && turn.toolCalls > 0) reason = "tool-calls";
    const isDelivered = error === null || (this.output.chunks.length > 0 && this.clients > 0);
    if (turn !== null && isDelivered) this.#commitToTape(turn.message);
    if (error === null && turn !== null) this.#answer(turn.message, reason);
    else this.#answerError(error);
    return { reason, message: turn?.message ?? null, malformed: turn?.malformed ?? false };
  }

  #commitToTape(message: AssistantMessage): void {
    const { core, session, prepared } = this.#init;
    try {
      session.init.tape.commit({
        callId: this.callId,
        conversation: prepared.conversation,
        plan: prepared.plan,
        sampledIds: this.#tokens.ids,
        message,
      });
    } catch (error) {
      // The answer is good; what is lost is the branch that the next call would have gone on from.
      core.captureFailed(session, error);
    }
  }

  #answer(message: AssistantMessage, finishReason: FinishReason): void {
    const { dialect, prepared } = this.#init;
    const usage = {
      promptTokens: prepared.plan.promptIds.length,
      completionTokens: this.#tokens.ids.length,
      cachedTokens: this.#tokens.cachedTokens,
    };
    if (prepared.request.stream) {
      this.#openOutput();
      this.output.write(this.#writer.end(finishReason, usage));
    } else {
      const answer = dialect.writeTurn(
        createCompleteTurn(message, finishReason, usage),
        this.#writerOptions,
      );
      if (this.output.head === null) {
        this.output.start({ status: answer.status, headers: answer.headers });
      }
      this.output.write(answer.body);
    }
    this.output.finish("complete");
  }

  /** Ends an answer whose end could not be written: with the error, else with a broken connection. */
  #breakOff(error: unknown): void {
    if (this.output.isEnded) return;
    try {
      this.#answerError(error);
    } catch {
      this.output.finish("cut");
    }
  }

  #answerError(error: unknown): void {
    const { session, dialect, prepared } = this.#init;
    // A failed or stopped call is never replayed: its retry is a new sample.
    session.retries.remove(this);
    // Whoever judges the attempt must see that it was not the agent that failed.
    const code = GimbalError.is(error) ? error.code : "engine-failed";
    if (engineFaults.has(code)) session.countFault(code);
    const wire = toWireError(error);
    if (this.output.head === null) {
      const answer = dialect.writeError(wire);
      this.output.start({ status: answer.status, headers: answer.headers });
      this.output.write(answer.body);
      this.output.finish("complete");
    } else if (prepared.request.stream) {
      this.output.write(this.#writer.error(wire));
      this.output.finish("complete");
    } else {
      this.output.finish("cut");
    }
  }

  #account(reason: FinishReason): void {
    const { core, session, prepared } = this.#init;
    session.promptTokens += prepared.plan.promptIds.length;
    core.metrics.add("calls_finished");
    core.metrics.add("prompt_tokens", prepared.plan.promptIds.length);
    core.metrics.add("sampled_tokens", this.#tokens.ids.length);
    if (reason === "aborted") core.metrics.add("calls_aborted");
    if (reason === "error") core.metrics.add("calls_failed");
    if (reason !== "length") return;
    if (session.tokensLeft() === 0) session.hitLimit("token-budget");
    else if (prepared.clampedBy !== null) session.hitLimit(prepared.clampedBy);
  }
}

function hexOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 24);
}
