/**
 * What a gateway is made from, and the limits that keep one hostile client from hurting the others.
 */
import type { CapturedCall, Engine, SamplingParameters, Store, TimerClock } from "@gimbal-rl/core";
import type { Dialect } from "@gimbal-rl/dialects";
import type { Renderer, Tape } from "@gimbal-rl/renderers";
import type { VolatileRule } from "./volatile-rules.js";

/** Limits on what clients may do to the server. Every one has a default. */
export interface GatewayLimits {
  /** Largest request body. Default 16 MiB: long agent histories stay far below. */
  readonly maxBodyBytes: number;
  /** Requests of one session open at a time. Default 64: sub-agents run side by side. */
  readonly maxOpenRequestsPerSession: number;
  /** Request bodies of one session in memory at a time. Default 48 MiB. */
  readonly maxOpenBodyBytesPerSession: number;
  /** Requests of one session that may be refused (4xx) before the rest are refused unread; a prompt that does not fit
   * counts eightfold, because tokenising it costs. Default 256. */
  readonly maxRefusedRequestsPerSession: number;
  /** Connections that carry no request of a known session; the oldest is closed above it. Default 512. */
  readonly maxIdleConnections: number;
  /** A prompt with more characters than this times the context is refused before it is tokenised. Default 16. */
  readonly maxCharactersPerToken: number;
  /** Time for a client to send its headers. Default 15 s. */
  readonly headersTimeoutMs: number;
  /** Time for a client to send its whole request. Default 60 s. */
  readonly requestTimeoutMs: number;
  /** A client that takes nothing for this long is cut. Default 300 s. */
  readonly stalledClientMs: number;
  /** An engine that sends no token for this long is given up. Default 600 s. */
  readonly stalledEngineMs: number;
  /** Closed sessions whose calls stay in memory. Default 64. */
  readonly closedSessionsKept: number;
}

/** Options of `createGateway`. */
export interface GatewayOptions {
  readonly engine: Engine;
  readonly renderer: Renderer;
  /** Makes the tape of one session: `createTape` of `@gimbal-rl/renderers`. */
  readonly createTape: (renderer: Renderer) => Tape;
  readonly dialects: readonly Dialect[];
  /** Where finished calls go (`call-end` events, raw bodies as blobs). Absent = kept in memory only. */
  readonly store?: Store;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly dataPort?: number;
  readonly controlPort?: number;
  /** A Unix socket for the control API instead of a port. */
  readonly controlSocket?: string;
  /** Default: 256 random bits. */
  readonly controlToken?: string;
  /** Base URL that harnesses use, when it differs from the listening address (containers). No trailing slash. */
  readonly publicUrl?: string;
  readonly clock?: TimerClock;
  /** Sampling of sessions that do not say; training sessions always use top-p 1 and top-k off. Temperature 1. */
  readonly sampling?: Partial<SamplingParameters>;
  /** Completion length when neither the harness nor a budget says. Default 4096. */
  readonly defaultMaxTokens?: number;
  /** Seed of the run; a call's seed is a hash of it, the attempt, the prompt and the occurrence. Default 0. */
  readonly seed?: number;
  readonly volatileRules?: readonly VolatileRule[];
  /** Something is sent at least this often. Default 10 s. */
  readonly heartbeatMs?: number;
  /** A stream's headers go out after this long without a token; before that a failure still has a status. Default 2 s. */
  readonly earlyHeadersMs?: number;
  /** How long a call lives on after its last client left. Default 2 s. */
  readonly disconnectGraceMs?: number;
  readonly limits?: Partial<GatewayLimits>;
  /** Builds what `GET /v1/sessions/{id}/trajectory` answers. */
  readonly buildTrajectory?: (calls: readonly CapturedCall[], policy: string) => unknown;
  /** Called when a capture could not be stored; the call itself goes on. */
  readonly onCaptureError?: (error: Error) => void;
}

/** Defaults of {@link GatewayLimits}. */
export const defaultLimits: GatewayLimits = {
  maxBodyBytes: 16 * 1024 * 1024,
  maxOpenRequestsPerSession: 64,
  maxOpenBodyBytesPerSession: 48 * 1024 * 1024,
  maxRefusedRequestsPerSession: 256,
  maxIdleConnections: 512,
  maxCharactersPerToken: 16,
  headersTimeoutMs: 15_000,
  requestTimeoutMs: 60_000,
  stalledClientMs: 300_000,
  stalledEngineMs: 600_000,
  closedSessionsKept: 64,
};
