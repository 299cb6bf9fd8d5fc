/**
 * All sessions, found by key digest (data side) or id (control side).
 *
 * Law: a key opens exactly one session; closed sessions are told apart from unknown keys; memory is bounded.
 */
import { randomBytes } from "node:crypto";
import {
  asId,
  type EngineInfo,
  GimbalError,
  type SamplingParameters,
  type SessionId,
} from "@gimbal-rl/core";
import type { Tape } from "@gimbal-rl/renderers";
import { createCapabilityKey, keyDigest } from "./capability-key.js";
import { Session } from "./session.js";
import type { SessionSpec } from "./session-spec.js";

/** Digests of closed keys remembered, to answer 409 and not 401. */
const maxClosedKeys = 100_000;

/** What a registry is made from. */
export interface RegistryOptions {
  readonly engine: EngineInfo;
  readonly sampling: SamplingParameters;
  readonly createTape: () => Tape;
  readonly nowMs: () => number;
  readonly closedSessionsKept: number;
}

/** The sessions of one gateway. */
export class SessionRegistry {
  readonly #options: RegistryOptions;
  readonly #byKey = new Map<string, Session>();
  readonly #byId = new Map<SessionId, Session>();
  readonly #keyOf = new Map<SessionId, string>();
  readonly #closedKeys = new Set<string>();
  readonly #closedOrder: SessionId[] = [];

  constructor(options: RegistryOptions) {
    this.#options = options;
  }

  /**
   * Makes a session and its key.
   * @throws {GimbalError} `missing-logprobs`, `config-invalid` when the engine cannot serve a training session.
   */
  create(spec: SessionSpec): { readonly session: Session; readonly key: string } {
    const sampling = { ...this.#options.sampling, ...spec.sampling };
    const training = spec.training ?? false;
    if (training) assertTrainable(this.#options.engine, sampling);
    const session = new Session({
      sessionId: asId<SessionId>(`ses-${randomBytes(12).toString("hex")}`),
      attemptId: spec.attemptId ?? null,
      taskId: spec.taskId ?? null,
      training,
      sampling: training ? { temperature: sampling.temperature, topP: 1, topK: 0 } : sampling,
      budgets: spec.budgets ?? {},
      labels: spec.labels ?? {},
      seed: spec.seed ?? null,
      tape: this.#options.createTape(),
      createdAtMs: this.#options.nowMs(),
    });
    const key = createCapabilityKey();
    const digest = keyDigest(key);
    this.#byKey.set(digest, session);
    this.#byId.set(session.init.sessionId, session);
    this.#keyOf.set(session.init.sessionId, digest);
    return { session, key };
  }

  /** The open session of a key.
   * @throws {GimbalError} `session-unknown`, `session-closed`. */
  authenticate(key: string | null): Session {
    const digest = key === null ? "" : keyDigest(key);
    const session = this.#byKey.get(digest);
    if (session !== undefined) return session;
    if (this.#closedKeys.has(digest)) {
      throw new GimbalError("session-closed", "This session has ended; it takes no more calls.");
    }
    throw new GimbalError(
      "session-unknown",
      "Invalid API key. Use the key of an open session (sk-gimbal-...).",
    );
  }

  /** @throws {GimbalError} `session-unknown`. */
  get(sessionId: SessionId): Session {
    const session = this.#byId.get(sessionId);
    if (session !== undefined) return session;
    throw new GimbalError(
      "session-unknown",
      `There is no session "${sessionId}" here. It may have been closed long ago; its calls are in the store.`,
    );
  }

  all(): Session[] {
    return [...this.#byId.values()];
  }

  get openCount(): number {
    return this.#byKey.size;
  }

  /** Ends the key's life; the calls stay readable for a while. */
  close(session: Session): void {
    const { sessionId } = session.init;
    const digest = this.#keyOf.get(sessionId);
    if (digest === undefined) return;
    this.#keyOf.delete(sessionId);
    this.#byKey.delete(digest);
    this.#closedKeys.add(digest);
    if (this.#closedKeys.size > maxClosedKeys) {
      for (const oldest of this.#closedKeys) {
        this.#closedKeys.delete(oldest);
        break;
      }
    }
    session.closedAtMs = this.#options.nowMs();
    session.retries.clear();
    this.#closedOrder.push(sessionId);
    while (this.#closedOrder.length > this.#options.closedSessionsKept) {
      const oldest = this.#closedOrder.shift();
      if (oldest !== undefined) this.#byId.delete(oldest);
    }
  }
}

function assertTrainable(engine: EngineInfo, sampling: SamplingParameters): void {
  if (engine.captureMode !== "tokens") {
    throw new GimbalError(
      "config-invalid",
      `Engine ${engine.id} works in mode "${engine.captureMode}" and does not take and return token ids here, so it cannot serve a training session. Use an engine in mode "tokens", or open the session without training.`,
    );
  }
  if (!engine.logprobsAfterTemperature && sampling.temperature !== 1) {
    throw new GimbalError(
      "missing-logprobs",
      `Engine ${engine.id} returns log-probabilities from before the temperature, and this session samples at ${sampling.temperature}. Use temperature 1, or an engine that returns them after it.`,
    );
  }
}
