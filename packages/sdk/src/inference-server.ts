/**
 * An OpenAI-compatible server over an engine: chat and completions, streamed and whole, with token ids and
 * log-probabilities on request.
 *
 * Laws: one answer is one generation, stopped when its client leaves; errors have the API's shape; nothing is stored.
 */
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Engine, GimbalError, systemClock } from "@gimbal-rl/core";
import { type DialectResponse, openAiChat } from "@gimbal-rl/dialects";
import { bodyText, carriesSecret, listenOnPort, readBody, requestUrl } from "@gimbal-rl/proxy";
import type { Renderer } from "@gimbal-rl/renderers";
import { answerChat } from "./inference-chat.js";
import { answerCompletion } from "./inference-completions.js";
import { toInferenceError } from "./inference-error.js";
import { createSeedSource, type InferenceContext } from "./inference-request.js";

/** Limits on what clients may do. Every one has a default. */
export interface InferenceLimits {
  /** Largest request body. Default 16 MiB. */
  readonly maxBodyBytes: number;
  /** Requests answered or waiting at a time; further ones get 503. Default 256. */
  readonly maxOpenRequests: number;
  /** A prompt with more characters than this times the context is refused before it is tokenised. Default 32. */
  readonly maxCharactersPerToken: number;
}

/** Options of {@link createInferenceServer}. */
export interface InferenceServerOptions {
  readonly engine: Engine;
  readonly renderer: Renderer;
  /** Name in `/v1/models` and in answers. Default: the engine's. Requests may name any model: there is one. */
  readonly model?: string;
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  /** When given, requests must carry it (`Authorization: Bearer ...`). */
  readonly apiKey?: string;
  /** Seed of requests that name none. Default: random. */
  readonly seed?: number;
  /** Chat completion length when the request does not say. Default 4096. */
  readonly defaultMaxTokens?: number;
  readonly limits?: Partial<InferenceLimits>;
  /** Why the engine no longer works, for `/health`; null while it does. */
  readonly failure?: () => Error | null;
}

/** A running server. */
export interface InferenceServer {
  /** Base URL without a trailing slash; OpenAI clients take `<url>/v1`. */
  readonly url: string;
  readonly model: string;
  /** Stops answers in flight and the server; the engine stays. */
  [Symbol.asyncDispose](): Promise<void>;
}

const jsonHeaders = { "content-type": "application/json; charset=utf-8" };
/** An answer of a stopped server gets this long to reach its client. */
const flushWaitMs = 1000;

/**
 * Starts a server.
 * @throws {GimbalError} `port-in-use`, `config-invalid`.
 * @example
 * await using server = await createInferenceServer({ engine, renderer });
 * const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
 */
export async function createInferenceServer(
  options: InferenceServerOptions,
): Promise<InferenceServer> {
  const { engine } = options;
  const limits: InferenceLimits = {
    maxBodyBytes: 16 * 1024 * 1024,
    maxOpenRequests: 256,
    maxCharactersPerToken: 32,
    ...options.limits,
  };
  const context: InferenceContext = {
    engine,
    renderer: options.renderer,
    model: options.model ?? engine.info.model,
    defaultMaxTokens: options.defaultMaxTokens ?? 4096,
    maxCharactersPerToken: limits.maxCharactersPerToken,
    nextSeed: createSeedSource(options.seed ?? randomBytes(4).readUInt32LE()),
    nowMs: systemClock.nowMs,
  };
  const host = options.host ?? "127.0.0.1";
  const shutdown = new AbortController();
  const answering = new Set<Promise<void>>();

  const route = createRoutes(context, options, limits, () => answering.size);
  const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 60_000 });
  server.on("request", (request, response) => {
    // A client that vanishes raises errors on both streams; the close event below is what counts.
    request.on("error", () => {});
    response.on("error", () => {});
    const left = new AbortController();
    response.once("close", () => left.abort());
    const signal = AbortSignal.any([left.signal, shutdown.signal]);
    const answer = route(request, response, signal)
      .catch((error: unknown) => sendError(request, response, error))
      .finally(() => answering.delete(answer));
    answering.add(answer);
  });
  const port = await listenOnPort(server, host, options.port ?? 0);
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    model: context.model,
    [Symbol.asyncDispose]: async () => {
      server.close();
      shutdown.abort();
      const timer = setTimeout(() => server.closeAllConnections(), flushWaitMs);
      timer.unref();
      await Promise.all(answering);
      clearTimeout(timer);
      server.closeAllConnections();
    },
  };
}

type Route = (
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
) => Promise<void>;

function createRoutes(
  context: InferenceContext,
  options: InferenceServerOptions,
  limits: InferenceLimits,
  openRequests: () => number,
): Route {
  const { apiKey } = options;
  const generate = async (
    answer: typeof answerChat,
    ...[request, response, signal]: Parameters<Route>
  ): Promise<void> => {
    if (openRequests() >= limits.maxOpenRequests) {
      throw new GimbalError(
        "unavailable",
        `${limits.maxOpenRequests} requests are open, which is the limit. Try again later.`,
      );
    }
    const body = await readBody(request, limits.maxBodyBytes, { take: () => true });
    await answer(context, bodyText(body), response, signal);
  };
  return async (request, response, signal) => {
    const { pathname } = requestUrl(request);
    const target = `${request.method} ${pathname.replace(/\/+$/, "")}`;
    if (target === "GET /health" || target === "GET /healthz") {
      sendHealth(response, options.failure?.() ?? null);
      return;
    }
    if (apiKey !== undefined && !carriesSecret(request, apiKey)) {
      throw new GimbalError(
        "unauthorized",
        "Wrong or missing API key (Authorization: Bearer ...).",
      );
    }
    switch (target) {
      case "POST /v1/chat/completions":
        return generate(answerChat, request, response, signal);
      case "POST /v1/completions":
        return generate(answerCompletion, request, response, signal);
      case "GET /v1/models":
        return send(response, openAiChat.writeModels([context.model]));
      case `GET /v1/models/${encodeURIComponent(context.model)}`: {
        const { body, ...rest } = openAiChat.writeModels([context.model]);
        const { data } = JSON.parse(body) as { data: unknown[] };
        return send(response, { ...rest, body: JSON.stringify(data[0]) });
      }
      default:
        throw new GimbalError(
          "not-found",
          `There is no ${target} here; expected POST /v1/chat/completions, POST /v1/completions, GET /v1/models or GET /health.`,
        );
    }
  };
}

function sendHealth(response: ServerResponse, failure: Error | null): void {
  response.writeHead(failure === null ? 200 : 503, jsonHeaders);
  response.end(
    JSON.stringify(
      failure === null ? { status: "ok" } : { status: "failed", message: failure.message },
    ),
  );
}

function send(response: ServerResponse, answer: DialectResponse): void {
  response.writeHead(answer.status, answer.headers).end(answer.body);
}

function sendError(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  // A body that is not wanted is not read on: the connection ends with the answer.
  if (!request.complete) response.setHeader("connection", "close");
  send(response, openAiChat.writeError(toInferenceError(error)));
}
