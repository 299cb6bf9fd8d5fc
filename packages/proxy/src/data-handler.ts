/**
 * The data port: who is asking, in which protocol, and what for. Authentication comes before the body is read.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type CallId, GimbalError } from "@gimbal-rl/core";
import type { Dialect, DialectResponse, DialectRoute } from "@gimbal-rl/dialects";
import { CallRun } from "./call-run.js";
import { readKeyedPath } from "./capability-key.js";
import type { ConnectionGuard } from "./connection-guard.js";
import type { GatewayCore } from "./gateway-core.js";
import { prepareCall } from "./prepare-call.js";
import { bodyText, readBody } from "./read-body.js";
import { requestDigest } from "./retry-table.js";
import type { Session } from "./session.js";
import { toWireError } from "./wire-error.js";

/** After an error to a client that still sends, the connection lives this long, so that the error is read. */
const lingerMs = 1000;

interface Target {
  readonly dialect: Dialect;
  readonly route: DialectRoute;
}

/** Handles every request of the data port. */
export function createDataHandler(
  core: GatewayCore,
  guard: ConnectionGuard,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    core.metrics.add("requests");
    const { path, key } = readKeyedPath(request);
    // Some harnesses probe with HEAD before they send a key; it tells them nothing.
    if (request.method === "HEAD") {
      response.writeHead(200).end();
      return;
    }
    const target = findTarget(core, request.method ?? "GET", path);
    const dialect = target?.dialect ?? core.dialects[0];
    let session: Session | null = null;
    let release = (): void => {};
    try {
      session = core.sessions.authenticate(key);
      release = guard.hold(request.socket);
      if (target === null) {
        throw new GimbalError("not-found", `There is no ${request.method} ${path} here.`);
      }
      assertWelcome(core, session);
      session.openRequests += 1;
      try {
        await serve(core, session, target, path, request, response);
      } finally {
        session.openRequests -= 1;
      }
    } catch (error) {
      const isStranger =
        GimbalError.is(error) &&
        (error.code === "session-unknown" || error.code === "session-closed");
      if (isStranger) core.metrics.add("auth_failures");
      else if (session !== null) countRefusal(core, session, error);
      sendError(core, dialect, request, response, error);
    } finally {
      release();
    }
  };
}

function findTarget(core: GatewayCore, method: string, path: string): Target | null {
  for (const dialect of core.dialects) {
    const route = dialect.route(method, path);
    if (route !== null) return { dialect, route };
  }
  return null;
}

/** @throws {GimbalError} `budget-exhausted`, `unavailable`: before any body is read. */
function assertWelcome(core: GatewayCore, session: Session): void {
  if (session.refusedRequests >= core.limits.maxRefusedRequestsPerSession) {
    throw new GimbalError(
      "budget-exhausted",
      "Stop now: too many requests of this session were refused, so no more are read.",
    );
  }
  if (session.openRequests >= core.limits.maxOpenRequestsPerSession) {
    throw new GimbalError(
      "unavailable",
      `This session has ${session.openRequests} requests open, which is its limit. Try again later.`,
      { details: { ownLimit: true } },
    );
  }
}

async function serve(
  core: GatewayCore,
  session: Session,
  { dialect, route }: Target,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  switch (route.kind) {
    case "models":
      send(response, dialect.writeModels([core.engine.info.model]));
      return;
    case "count-tokens":
      throw new GimbalError("not-found", `${dialect.id} token counting is not served yet.`);
    case "generate":
      await serveGenerate(core, session, dialect, path, request, response);
      return;
    default:
      route satisfies never;
  }
}

async function serveGenerate(
  core: GatewayCore,
  session: Session,
  dialect: Dialect,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let heldBytes = 0;
  try {
    const body = await readBody(request, core.limits.maxBodyBytes, {
      take: (bytes) => {
        heldBytes += bytes;
        session.openBodyBytes += bytes;
        return session.openBodyBytes <= core.limits.maxOpenBodyBytesPerSession;
      },
    });
    if (session.closedAtMs !== null) {
      throw new GimbalError("session-closed", "This session has ended; it takes no more calls.");
    }
    const digest = requestDigest(path, body);
    const isRetry = Number(request.headers["x-stainless-retry-count"] ?? 0) > 0;
    const earlier = isRetry ? session.retries.find(digest) : null;
    if (earlier !== null) {
      session.replays += 1;
      core.metrics.add("replays");
      await earlier.attach(response);
      return;
    }
    const retryOf = isRetry ? session.retries.latest(digest) : null;
    const run = startCall(core, session, dialect, body, retryOf);
    session.retries.add(digest, run);
    await run.attach(response);
  } finally {
    session.openBodyBytes -= heldBytes;
  }
}

/** @throws {GimbalError} whatever forbids the call; nothing was sampled then. */
function startCall(
  core: GatewayCore,
  session: Session,
  dialect: Dialect,
  body: Uint8Array,
  retryOf: CallId | null,
): CallRun {
  const exhausted = session.exhaustedBudget(core.clock.nowMs());
  if (exhausted !== null) {
    session.hitLimit(exhausted);
    throw new GimbalError(
      "budget-exhausted",
      `Stop now: the ${exhausted} of this session is used up (${session.callCount} calls, ${session.sampledTokens} sampled tokens).`,
      { details: { limit: exhausted } },
    );
  }
  const parsed = dialect.parseRequest(bodyText(body));
  const prepared = prepareCall(session, parsed, {
    engine: core.engine,
    renderer: core.renderer,
    volatileRules: core.volatileRules,
    defaultMaxTokens: core.defaultMaxTokens,
    maxCharactersPerToken: core.limits.maxCharactersPerToken,
    runSeed: core.runSeed,
  });
  return new CallRun({ core, session, dialect, prepared, requestBody: body, retryOf });
}

function countRefusal(core: GatewayCore, session: Session, error: unknown): void {
  // A session's own limits are its own doing: counted as `unavailable` they would read as a fault of the engine.
  const isOwnLimit = GimbalError.is(error) && error.details.ownLimit === true;
  const code = isOwnLimit ? "session-busy" : GimbalError.is(error) ? error.code : "internal";
  if (code === "aborted") return;
  session.countRefusal(code);
  core.metrics.add("refusals");
}

function send(response: ServerResponse, answer: DialectResponse): void {
  if (response.destroyed) return;
  response.writeHead(answer.status, answer.headers);
  response.end(answer.body);
}

function sendError(
  core: GatewayCore,
  dialect: Dialect | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  const wire = toWireError(error);
  const answer = dialect?.writeError(wire) ?? {
    status: wire.status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: { message: wire.message, code: wire.code } }),
  };
  if (request.complete) {
    send(response, answer);
    return;
  }
  // The body is not wanted: answer, then read on for a moment so that the answer is not lost in a reset.
  response.shouldKeepAlive = false;
  response.setHeader("connection", "close");
  send(response, answer);
  request.resume();
  const cancel = core.clock.schedule(lingerMs, () => request.socket.destroy());
  request.once("close", cancel);
}
