/**
 * What the parts of a gateway share. One object per gateway; no globals.
 */
import type { CapturedCall, Engine, PolicyVersion, TimerClock } from "@gimbal-rl/core";
import type { Dialect } from "@gimbal-rl/dialects";
import type { Renderer } from "@gimbal-rl/renderers";
import type { AdmissionGate } from "./admission-gate.js";
import type { Metrics } from "./metrics.js";
import type { GatewayLimits } from "./options.js";
import type { SendOptions } from "./send-output.js";
import type { Session } from "./session.js";
import type { SessionRegistry } from "./session-registry.js";
import type { VolatileRule } from "./volatile-rules.js";

/** Shared state and settings. */
export interface GatewayCore {
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly dialects: readonly Dialect[];
  readonly clock: TimerClock;
  readonly gate: AdmissionGate;
  readonly metrics: Metrics;
  readonly limits: GatewayLimits;
  readonly send: SendOptions;
  readonly sessions: SessionRegistry;
  readonly volatileRules: readonly VolatileRule[];
  readonly earlyHeadersMs: number;
  readonly disconnectGraceMs: number;
  readonly defaultMaxTokens: number;
  readonly runSeed: number;
  /** The version to record for tokens that the engine stamped with `version`. */
  stampVersion(version: PolicyVersion): PolicyVersion;
  /** Counts a call whose record or place on the tape was lost. */
  captureFailed(session: Session, error: unknown): void;
  /** Keeps a finished call; storing goes on in the background. */
  capture(
    session: Session,
    call: CapturedCall,
    requestBody: Uint8Array,
    responseText: string,
  ): void;
}
