/**
 * The gateway's side of one attempt: its limits, its tape, its calls.
 *
 * Law: calls are counted when they are admitted, tokens when they are sampled; both before anything is sent.
 */
import { createHash } from "node:crypto";
import {
  type AttemptId,
  type Budgets,
  type CallId,
  type CapturedCall,
  hashToSeed,
  type SamplingParameters,
  type SessionId,
  type TaskId,
} from "@gimbal-rl/core";
import type { Tape } from "@gimbal-rl/renderers";
import type { CallRun } from "./call-run.js";
import { RetryTable } from "./retry-table.js";
import type { LimitHit, SessionInfo, SessionLimit } from "./session-spec.js";

/** A prompt that does not fit costs a tokenisation; harnesses send few, endless loops many. */
const overflowWeight = 8;

/** What a session is made from. */
export interface SessionInit {
  readonly sessionId: SessionId;
  readonly attemptId: AttemptId | null;
  readonly taskId: TaskId | null;
  readonly training: boolean;
  readonly sampling: SamplingParameters;
  readonly budgets: Budgets;
  readonly labels: Readonly<Record<string, string>>;
  /** What its sampling derives from; null = the attempt's id. */
  readonly seed: number | null;
  readonly tape: Tape;
  readonly createdAtMs: number;
}

/** One session. */
export class Session {
  readonly init: SessionInit;
  readonly calls: CapturedCall[] = [];
  readonly runs: Set<CallRun> = new Set();
  readonly retries: RetryTable = new RetryTable();
  /** Captures being stored; closing waits for them. */
  readonly captures: Set<Promise<void>> = new Set();
  closedAtMs: number | null = null;
  callCount = 0;
  sampledTokens = 0;
  promptTokens = 0;
  replays = 0;
  captureFailures = 0;
  openRequests = 0;
  openBodyBytes = 0;
  refusedRequests = 0;
  #firstCallAtMs: number | null = null;
  readonly #limitHits = new Map<SessionLimit, LimitHit>();
  readonly #refusals = new Map<string, number>();
  readonly #occurrences = new Map<string, number>();

  constructor(init: SessionInit) {
    this.init = init;
  }

  /** Counts a call and returns its position, from 0. */
  admitCall(nowMs: number): number {
    this.#firstCallAtMs ??= nowMs;
    this.callCount += 1;
    return this.callCount - 1;
  }

  /** The budget that forbids another call, or null. */
  exhaustedBudget(nowMs: number): SessionLimit | null {
    const { maxCalls, maxSampledTokens, wallClockMs } = this.init.budgets;
    if (maxCalls !== undefined && this.callCount >= maxCalls) return "call-budget";
    if (maxSampledTokens !== undefined && this.sampledTokens >= maxSampledTokens) {
      return "token-budget";
    }
    // Counted from the first call, so that this backstop never fires before the rollout's own deadline.
    if (
      wallClockMs !== undefined &&
      this.#firstCallAtMs !== null &&
      nowMs - this.#firstCallAtMs >= wallClockMs
    ) {
      return "wall-clock";
    }
    return null;
  }

  /** Sampled tokens the session may still take. */
  tokensLeft(): number {
    return Math.max(
      0,
      (this.init.budgets.maxSampledTokens ?? Number.POSITIVE_INFINITY) - this.sampledTokens,
    );
  }

  hitLimit(limit: SessionLimit): void {
    const known = this.#limitHits.get(limit);
    this.#limitHits.set(limit, {
      limit,
      hits: (known?.hits ?? 0) + 1,
      atCall: known?.atCall ?? this.callCount,
    });
  }

  countRefusal(code: string): void {
    this.refusedRequests += code === "context-length-exceeded" ? overflowWeight : 1;
    this.countFault(code);
  }

  /** Counts a call that failed after it was admitted: not the harness's doing, so no step to being refused unread. */
  countFault(code: string): void {
    this.#refusals.set(code, (this.#refusals.get(code) ?? 0) + 1);
  }

  /**
   * Identity of a call that does not depend on arrival order: how often this prompt was sampled before in the session.
   * Equal prompts in flight together may swap, which changes nothing: they are draws from one distribution.
   */
  nextOccurrence(promptIds: readonly number[]): {
    readonly digest: string;
    readonly occurrence: number;
  } {
    const digest = createHash("sha256").update(Int32Array.from(promptIds)).digest("base64");
    const occurrence = this.#occurrences.get(digest) ?? 0;
    this.#occurrences.set(digest, occurrence + 1);
    return { digest, occurrence };
  }

  /** What sampling derives from: the session's own seed, else the attempt, else the session. */
  seedOwner(): string {
    if (this.init.seed !== null) return `seed-${this.init.seed}`;
    return this.init.attemptId ?? this.init.sessionId;
  }

  seedOf(runSeed: number, promptIds: readonly number[], occurrence: number): number {
    return hashToSeed(runSeed, this.seedOwner(), promptIds, occurrence);
  }

  callIdAt(index: number): CallId {
    return `${this.init.sessionId}.${index}` as CallId;
  }

  info(): SessionInfo {
    const { tape: _tape, seed: _seed, createdAtMs, ...rest } = this.init;
    return {
      ...rest,
      state: this.closedAtMs === null ? "open" : "closed",
      createdAtMs,
      closedAtMs: this.closedAtMs,
      calls: this.callCount,
      inFlight: this.runs.size,
      sampledTokens: this.sampledTokens,
      promptTokens: this.promptTokens,
      limitHits: [...this.#limitHits.values()],
      refusals: Object.fromEntries(this.#refusals),
      replays: this.replays,
      captureFailures: this.captureFailures,
    };
  }
}
