/** A gateway with a scripted engine, the real renderer, tape and dialect, and clients for it. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { openAiChat } from "@gimbal-rl/dialects";
import { createTape, loadRenderer, type Renderer } from "@gimbal-rl/renderers";
import {
  createFakeClock,
  createScriptedEngine,
  createTestModelTexts,
  type EngineScript,
  type FakeClock,
  type ScriptedEngine,
} from "@gimbal-rl/testkit";
import OpenAI from "openai";
import {
  createGateway,
  type Gateway,
  type GatewayOptions,
  type SessionGrant,
} from "../src/index.js";

/** Loaded once: probing the template costs more than a test. */
export const renderer: Renderer = loadRenderer(createTestModelTexts());

/** Everything a test needs; disposed by the caller. */
export interface Bench extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly engine: ScriptedEngine;
  readonly clock: FakeClock;
}

/** Starts a gateway in front of a scripted engine. */
export async function startBench(
  script: EngineScript,
  options: Partial<GatewayOptions> & { readonly info?: Partial<ScriptedEngine["info"]> } = {},
): Promise<Bench> {
  const { info, ...gatewayOptions } = options;
  const clock = createFakeClock();
  const engine = createScriptedEngine({
    encode: (text, encodeOptions) => renderer.tokenizer.encode(text, encodeOptions),
    script,
    ...(info === undefined ? {} : { info }),
  });
  const gateway = await createGateway({
    engine,
    renderer,
    createTape,
    dialects: [openAiChat],
    clock,
    ...gatewayOptions,
  });
  return {
    gateway,
    engine,
    clock,
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

/** The official SDK on a session. */
export function sdkFor(grant: SessionGrant, maxRetries = 0): OpenAI {
  return new OpenAI({ baseURL: grant.baseUrls.openai, apiKey: grant.key, maxRetries });
}

/** A chat body with one user message. */
export function chatBody(text: string, extra: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ model: "m", messages: [{ role: "user", content: text }], ...extra });
}

/** One raw HTTP exchange, or the start of one. */
export interface RawExchange {
  readonly status: Promise<number>;
  readonly headers: Promise<IncomingMessage["headers"]>;
  /** Rejects when the connection breaks. */
  readonly text: Promise<string>;
  /** What arrived so far. */
  received(): string;
  destroy(): void;
}

/** Posts a chat body; the answer is read as it comes. */
export function post(
  url: string,
  key: string,
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
): RawExchange {
  let received = "";
  const request = httpRequest(url, {
    method: "POST",
    agent: false,
    headers: {
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(body)),
      ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
  });
  const response = new Promise<IncomingMessage>((resolve, reject) => {
    request.once("response", resolve);
    request.once("error", reject);
  });
  const text = response.then(
    (incoming) =>
      new Promise<string>((resolve, reject) => {
        incoming.setEncoding("utf8");
        incoming.on("data", (chunk: string) => {
          received += chunk;
        });
        incoming.once("end", () => resolve(received));
        incoming.once("error", reject);
        incoming.once("close", () => reject(new Error("closed")));
      }),
  );
  const status = response.then((incoming) => incoming.statusCode ?? 0);
  const responseHeaders = response.then((incoming) => incoming.headers);
  // A test that destroys the exchange looks at none of these.
  for (const promise of [text, status, responseHeaders]) promise.catch(() => {});
  request.on("error", () => {});
  request.end(body);
  return {
    status,
    headers: responseHeaders,
    text,
    received: () => received,
    destroy: () => request.destroy(),
  };
}

/** The chat completions URL of a session. */
export function chatUrl(grant: SessionGrant): string {
  return `${grant.baseUrls.openai}/chat/completions`;
}

/** Sends one plain call and returns status and parsed body. */
export async function call(
  grant: SessionGrant,
  text: string,
  extra: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const exchange = post(chatUrl(grant), grant.key, chatBody(text, extra), headers);
  const body = JSON.parse(await exchange.text) as Record<string, unknown>;
  return { status: await exchange.status, body };
}

/** A promise and the function that resolves it. */
export function deferred(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}

/** A tool as harnesses offer it. */
export const readTool = {
  type: "function",
  function: {
    name: "read",
    description: "Reads a file.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  },
} as const;

/** The text of the content deltas that arrived so far. */
export function streamedText(exchange: RawExchange): string {
  const pieces = exchange.received().matchAll(/"content":("(?:[^"\\]|\\.)*")/g);
  return [...pieces].map((piece) => JSON.parse(piece[1] ?? '""') as string).join("");
}
