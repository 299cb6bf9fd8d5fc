/**
 * The control API: sessions, pause and resume, metrics. Another port, another token; agents cannot reach it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import {
  asId,
  type ErrorCode,
  GimbalError,
  type PolicyVersion,
  type SessionId,
} from "@gimbal-rl/core";
import { carriesSecret } from "./capability-key.js";
import type { ConnectionGuard } from "./connection-guard.js";
import type { Gateway } from "./gateway.js";
import { bodyText, readBody } from "./read-body.js";
import { requestUrl } from "./request-url.js";
import { parseSessionSpec } from "./session-spec.js";

const maxControlBodyBytes = 1024 * 1024;

/** Everything else is a failure of ours: 500. */
const statuses: ReadonlyMap<ErrorCode, number> = new Map<ErrorCode, number>([
  ["aborted", 409],
  ["config-invalid", 422],
  ["invalid-request", 400],
  ["missing-logprobs", 422],
  ["not-found", 404],
  ["session-unknown", 404],
  ["timeout", 504],
  ["unauthorized", 401],
  ["unavailable", 503],
]);

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

function json(status: number, value: unknown): Answer {
  return { status, contentType: "application/json", text: `${JSON.stringify(value)}\n` };
}

/** Handles every request of the control port. */
export function createControlHandler(
  gateway: Gateway,
  token: string,
  guard: ConnectionGuard,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  return async (request, response) => {
    let answer: Answer;
    /** Fires when the client left, or has its answer. */
    const closed = new AbortController();
    response.once("close", () => closed.abort());
    try {
      const url = requestUrl(request);
      const target = `${request.method} ${url.pathname}`;
      // Liveness tells nothing and needs no token.
      if (target === "GET /healthz") answer = json(200, { status: "ok" });
      else {
        assertToken(request, token);
        const release = guard.hold(request.socket);
        closed.signal.addEventListener("abort", release, { once: true });
        answer = await route(gateway, request, url, target, closed.signal);
      }
    } catch (error) {
      const known = GimbalError.is(error) ? error : null;
      const code = known?.code ?? "internal";
      const message = known?.message ?? "The gateway failed.";
      answer = json((known === null ? undefined : statuses.get(known.code)) ?? 500, {
        error: { code, message, details: known?.details ?? {} },
      });
    }
    if (response.destroyed) return;
    if (!request.complete) response.shouldKeepAlive = false;
    response.writeHead(answer.status, { "content-type": answer.contentType });
    response.end(answer.text);
    request.resume();
  };
}

/** @throws {GimbalError} `unauthorized`. */
function assertToken(request: IncomingMessage, token: string): void {
  if (carriesSecret(request, token)) return;
  throw new GimbalError(
    "unauthorized",
    "Wrong or missing control token (Authorization: Bearer ...).",
  );
}

async function route(
  gateway: Gateway,
  request: IncomingMessage,
  url: URL,
  target: string,
  signal: AbortSignal,
): Promise<Answer> {
  switch (target) {
    case "GET /metrics":
      return { status: 200, contentType: "text/plain; version=0.0.4", text: gateway.metrics() };
    case "GET /v1/sessions":
      return json(200, { sessions: gateway.sessions() });
    case "POST /v1/sessions":
      return json(201, gateway.createSession(parseSessionSpec(await readJson(request))));
    case "POST /v1/pause":
      await gateway.pause(signal);
      return json(200, { paused: true, policyVersion: gateway.policyVersion() });
    case "POST /v1/resume": {
      const version = await readPolicyVersion(request);
      gateway.resume(version);
      return json(200, { paused: false, policyVersion: gateway.policyVersion() });
    }
  }
  const match = /^\/v1\/sessions\/([^/]+)(?:\/(calls|trajectory))?$/.exec(url.pathname);
  if (match !== null) {
    // Session ids hold no character that needs escaping, so an escaped one is simply unknown.
    const sessionId = asId<SessionId>(match[1] ?? "");
    const answer = await routeSession(
      gateway,
      request.method ?? "",
      sessionId,
      match[2] ?? "",
      url,
    );
    if (answer !== null) return answer;
  }
  throw new GimbalError("not-found", `There is no ${target} in the control API.`);
}

async function routeSession(
  gateway: Gateway,
  method: string,
  sessionId: SessionId,
  part: string,
  url: URL,
): Promise<Answer | null> {
  switch (`${method} ${part}`) {
    case "GET ":
      return json(200, gateway.session(sessionId));
    case "DELETE ":
      return json(200, await gateway.closeSession(sessionId));
    case "GET calls":
      return json(200, { calls: gateway.calls(sessionId) });
    case "GET trajectory":
      return json(200, gateway.trajectory(sessionId, url.searchParams.get("policy") ?? "strict"));
    default:
      return null;
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const text = bodyText(await readBody(request, maxControlBodyBytes, { take: () => true }));
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new GimbalError("invalid-request", "The request body is not JSON.", { cause: error });
  }
}

async function readPolicyVersion(request: IncomingMessage): Promise<PolicyVersion | undefined> {
  const body = await readJson(request);
  const version =
    typeof body === "object" && body !== null && "policyVersion" in body
      ? body.policyVersion
      : null;
  if (version === null) return undefined;
  if (typeof version !== "string" || version === "") {
    throw new GimbalError("invalid-request", 'Field "policyVersion" must be a non-empty string.');
  }
  return asId<PolicyVersion>(version);
}
