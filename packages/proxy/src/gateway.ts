/**
 * The gateway: a data port for harnesses and a control API for whoever runs them, in front of one engine.
 *
 * Law: everything a session samples is captured once; nothing a harness sends can reach another session or the control
 * side.
 */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import {
  type CapturedCall,
  GimbalError,
  type PolicyVersion,
  type SessionId,
  systemTimerClock,
} from "@gimbal-rl/core";
import { AdmissionGate } from "./admission-gate.js";
import { storeCapturedCall } from "./call-record.js";
import { guardConnections } from "./connection-guard.js";
import { createControlHandler } from "./control-handler.js";
import { createDataHandler } from "./data-handler.js";
import type { GatewayCore } from "./gateway-core.js";
import { listenOnPort, listenOnSocket } from "./listen.js";
import { createMetrics } from "./metrics.js";
import { defaultLimits, type GatewayOptions } from "./options.js";
import type { Session } from "./session.js";
import { SessionRegistry } from "./session-registry.js";
import type { SessionGrant, SessionInfo, SessionSpec } from "./session-spec.js";
import { defaultVolatileRules } from "./volatile-rules.js";

/** Longest wait for records to be stored when a gateway is disposed. */
const disposeWaitMs = 10_000;
/** Longest wait for clients to take their last bytes when a gateway is disposed. */
const flushWaitMs = 1000;

/** A running gateway. */
export interface Gateway {
  /** Base of the data port, no trailing slash. */
  readonly url: string;
  /** Base of the control API; `unix:<path>` when it is a socket. */
  readonly controlUrl: string;
  readonly controlToken: string;
  /** @throws {GimbalError} `config-invalid`, `missing-logprobs` for a training session the engine cannot serve. */
  createSession(spec?: SessionSpec): SessionGrant;
  /** Stops what runs, ends the key, waits until every record is stored. Closing twice is allowed. */
  closeSession(sessionId: SessionId): Promise<SessionInfo>;
  /** @throws {GimbalError} `session-unknown`. */
  session(sessionId: SessionId): SessionInfo;
  sessions(): SessionInfo[];
  /** Finished calls in order of arrival. */
  calls(sessionId: SessionId): CapturedCall[];
  /** @throws {GimbalError} `not-found` when the gateway was made without `buildTrajectory`. */
  trajectory(sessionId: SessionId, policy?: string): unknown;
  policyVersion(): PolicyVersion;
  readonly isPaused: boolean;
  /** Admits no more calls; resolves when none samples. Calls that arrive wait. */
  pause(signal?: AbortSignal): Promise<void>;
  /** Admits calls again, under `policyVersion` when given, else under the engine's own. */
  resume(policyVersion?: PolicyVersion): void;
  /** Counters in Prometheus text format. */
  metrics(): string;
  /** Stops calls and servers and waits, for a bounded time, until records are stored. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a gateway on free ports of the loopback interface, unless told otherwise.
 * @throws {GimbalError} `port-in-use`, `config-invalid`.
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { engine, renderer, store } = options;
  const clock = options.clock ?? systemTimerClock;
  const limits = { ...defaultLimits, ...options.limits };
  const metrics = createMetrics();
  const gate = new AdmissionGate();
  const controlToken = options.controlToken ?? randomBytes(32).toString("base64url");
  let resumedVersion: PolicyVersion | null = null;

  const sessions = new SessionRegistry({
    engine: engine.info,
    sampling: { temperature: 1, topP: 1, topK: 0, ...options.sampling },
    createTape: () => options.createTape(renderer),
    nowMs: () => clock.nowMs(),
    closedSessionsKept: limits.closedSessionsKept,
  });

  const captureFailed: GatewayCore["captureFailed"] = (session, error) => {
    session.captureFailures += 1;
    metrics.add("capture_failures");
    try {
      options.onCaptureError?.(error instanceof Error ? error : new Error(String(error)));
    } catch {
      // A listener that fails must not stop what it only hears of.
    }
  };

  const capture: GatewayCore["capture"] = (session, call, requestBody, responseText) => {
    session.calls[call.index] = call;
    if (store === undefined) return;
    const storing = storeCapturedCall(store, call, requestBody, responseText)
      .then((stored) => {
        session.calls[call.index] = stored;
      })
      .catch((error: unknown) => captureFailed(session, error))
      .finally(() => session.captures.delete(storing));
    session.captures.add(storing);
  };

  const core: GatewayCore = {
    engine,
    renderer,
    dialects: options.dialects,
    clock,
    gate,
    metrics,
    limits,
    sessions,
    send: {
      clock,
      heartbeatMs: options.heartbeatMs ?? 10_000,
      stalledClientMs: limits.stalledClientMs,
    },
    volatileRules: options.volatileRules ?? defaultVolatileRules,
    earlyHeadersMs: options.earlyHeadersMs ?? 2000,
    disconnectGraceMs: options.disconnectGraceMs ?? 2000,
    defaultMaxTokens: options.defaultMaxTokens ?? 4096,
    runSeed: options.seed ?? 0,
    stampVersion: (version) => resumedVersion ?? version,
    capture,
    captureFailed,
  };

  const stopRuns = async (session: Session, reason: GimbalError): Promise<void> => {
    const runs = [...session.runs];
    for (const run of runs) run.stop(reason);
    await Promise.all(runs.map((run) => run.settled));
    await Promise.all(session.captures);
  };

  const serverOptions = {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    // Above the idle time of common HTTP clients, so that they close first and never meet a reset.
    keepAliveTimeout: 65_000,
    connectionsCheckingInterval: Math.min(5000, limits.headersTimeoutMs),
  };
  const dataServer = createServer(serverOptions);
  const controlServer = createServer(serverOptions);
  const dataGuard = guardConnections(dataServer, limits.maxIdleConnections, () =>
    metrics.add("connections_evicted"),
  );
  const controlGuard = guardConnections(controlServer, limits.maxIdleConnections, () => {});
  const host = options.host ?? "127.0.0.1";
  /** Requests being answered, on both servers. */
  const answering = new Set<Promise<void>>();

  const gateway: Gateway = {
    url: "",
    controlUrl: "",
    controlToken,
    createSession: (spec = {}) => {
      const { session, key } = sessions.create(spec);
      const base = options.publicUrl ?? gateway.url;
      return {
        sessionId: session.init.sessionId,
        key,
        baseUrls: { openai: `${base}/v1`, anthropic: base, google: base },
      };
    },
    closeSession: async (sessionId) => {
      const session = sessions.get(sessionId);
      sessions.close(session);
      await stopRuns(session, new GimbalError("session-closed", "This session has ended."));
      return session.info();
    },
    session: (sessionId) => sessions.get(sessionId).info(),
    sessions: () => sessions.all().map((session) => session.info()),
    // Arrays by index have holes for calls that still run.
    calls: (sessionId) => sessions.get(sessionId).calls.filter((call) => call !== undefined),
    trajectory: (sessionId, policy = "strict") => {
      const calls = gateway.calls(sessionId);
      if (options.buildTrajectory === undefined) {
        throw new GimbalError(
          "not-found",
          "This gateway was started without a trajectory builder.",
        );
      }
      return options.buildTrajectory(calls, policy);
    },
    policyVersion: () => resumedVersion ?? engine.policyVersion(),
    get isPaused() {
      return gate.isPaused;
    },
    pause: (signal) => gate.pause(signal),
    resume: (policyVersion) => {
      const isOwn = policyVersion === undefined || policyVersion === engine.policyVersion();
      resumedVersion = isOwn ? null : policyVersion;
      gate.resume();
    },
    metrics: () =>
      metrics.render({
        sessions_open: sessions.openCount,
        calls_in_flight: gate.running,
        connections: dataGuard.count,
        paused: gate.isPaused ? 1 : 0,
      }),
    [Symbol.asyncDispose]: async () => {
      dataServer.close();
      controlServer.close();
      const reason = new GimbalError("unavailable", "The gateway is shutting down.");
      const all = sessions.all();
      for (const session of all) sessions.close(session);
      const stopped = Promise.all(all.map((session) => stopRuns(session, reason)));
      await settledWithin(stopped, disposeWaitMs);
      await settledWithin(Promise.all(answering), flushWaitMs);
      dataGuard.destroyAll();
      controlGuard.destroyAll();
      await settledWithin(Promise.all(answering), flushWaitMs);
    },
  };

  serveRequests(dataServer, answering, createDataHandler(core, dataGuard));
  serveRequests(
    controlServer,
    answering,
    createControlHandler(gateway, controlToken, controlGuard),
  );
  return open(gateway, options, host, { dataServer, controlServer });
}

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;
type HttpServer = ReturnType<typeof createServer>;

/** Waits for work, but not longer than this in real time: a fake clock must not be able to hang a shutdown. */
async function settledWithin(work: Promise<unknown>, limitMs: number): Promise<void> {
  let cancel = (): void => {};
  const waited = new Promise<void>((resolve) => {
    cancel = systemTimerClock.schedule(limitMs, resolve);
  });
  await Promise.race([work, waited]);
  cancel();
}

function serveRequests(server: HttpServer, answering: Set<Promise<void>>, handler: Handler): void {
  server.on("request", (request, response) => {
    // A client that vanishes raises errors on both streams; the handlers see the close event.
    request.on("error", () => {});
    response.on("error", () => {});
    const answer = handler(request, response)
      .catch(() => {
        response.destroy();
      })
      .finally(() => answering.delete(answer));
    answering.add(answer);
  });
  server.on("upgrade", (_request, socket: Duplex) => {
    socket.on("error", () => {});
    // Clients that try WebSocket first fall back to HTTP at once on this status.
    socket.end("HTTP/1.1 426 Upgrade Required\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
  });
  server.on("clientError", (_error, socket: Duplex) => {
    if (socket.writable) {
      socket.end("HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    } else socket.destroy();
  });
}

async function open(
  gateway: Gateway,
  options: GatewayOptions,
  host: string,
  {
    dataServer,
    controlServer,
  }: { readonly dataServer: HttpServer; readonly controlServer: HttpServer },
): Promise<Gateway> {
  const shown = host.includes(":") ? `[${host}]` : host;
  const writable: { -readonly [Key in keyof Gateway]: Gateway[Key] } = gateway;
  try {
    const dataPort = await listenOnPort(dataServer, host, options.dataPort ?? 0);
    writable.url = `http://${shown}:${dataPort}`;
    if (options.controlSocket !== undefined) {
      await listenOnSocket(controlServer, options.controlSocket);
      writable.controlUrl = `unix:${options.controlSocket}`;
    } else {
      const controlPort = await listenOnPort(controlServer, host, options.controlPort ?? 0);
      writable.controlUrl = `http://${shown}:${controlPort}`;
    }
    return gateway;
  } catch (error) {
    dataServer.close();
    controlServer.close();
    throw error;
  }
}
