/**
 * A small model server that plays a script, for testing harnesses without a model. Speaks `openai-chat` streams.
 *
 * Law: the turn to play is derived from the request (the number of tool results in it), so a retried request gets the
 * same answer.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One turn of the script. */
export type ScriptedTurn =
  | { readonly type: "tool"; readonly name: string; readonly arguments: unknown }
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "status"; readonly status: number; readonly body: unknown }
  /** Headers are sent, then nothing more. */
  | { readonly type: "silence" };

/** One request as it came. */
export interface ScriptedRequest {
  readonly path: string;
  readonly authorization: string;
  /** The raw body. */
  readonly body: string;
}

/** A running server. */
export interface ScriptedServer {
  /** Ends in `/v1`. */
  readonly url: string;
  readonly requests: readonly ScriptedRequest[];
  /** Streams that the client has closed before they ended. */
  readonly abandoned: () => number;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts on 127.0.0.1, port 0. The last turn of the script repeats. */
export async function startScriptedServer(
  script: readonly ScriptedTurn[],
): Promise<ScriptedServer> {
  const requests: ScriptedRequest[] = [];
  let abandoned = 0;
  const server = createServer((request, response) => {
    response.on("close", () => {
      if (!response.writableFinished) abandoned += 1;
    });
    answer(request, response, script, requests).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    abandoned: () => abandoned,
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  script: readonly ScriptedTurn[],
  requests: ScriptedRequest[],
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString("utf8");
  requests.push({
    path: request.url ?? "",
    authorization: request.headers.authorization ?? "",
    body,
  });
  const parsed = JSON.parse(body) as {
    readonly model?: string;
    readonly messages?: readonly { readonly role?: string }[];
  };
  const results = parsed.messages?.filter((message) => message.role === "tool").length ?? 0;
  const turn = script[Math.min(results, script.length - 1)] ?? { type: "text", text: "done" };
  play(response, turn, parsed.model ?? "model", results);
}

function play(
  response: ServerResponse,
  turn: ScriptedTurn,
  model: string,
  callNumber: number,
): void {
  if (turn.type === "status") {
    response.writeHead(turn.status, { "content-type": "application/json" });
    response.end(JSON.stringify(turn.body));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  if (turn.type === "silence") return;
  const send = (delta: unknown, finish: string | null = null): void => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const usage =
      finish === null
        ? {}
        : { usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } };
    const chunk = {
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model,
      choices,
      ...usage,
    };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  send({ role: "assistant", content: turn.type === "text" ? turn.text : "" });
  if (turn.type === "tool") {
    const call = { name: turn.name, arguments: JSON.stringify(turn.arguments) };
    const id = `call_${callNumber}`;
    send({ tool_calls: [{ index: 0, id, type: "function", function: call }] });
  }
  send({}, turn.type === "tool" ? "tool_calls" : "stop");
  response.end("data: [DONE]\n\n");
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
