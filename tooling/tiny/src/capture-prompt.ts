/**
 * What the real Pi sends first: its system prompt and tools, captured from one run against a server that says stop.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type Harness,
  type JsonNode,
  parseJsonText,
  pythonNumberText,
  type Sandbox,
} from "@gimbal-rl/core";
import { runHarness } from "@gimbal-rl/harness";

/** The fixed text of a harness's prompt. */
export interface CapturedPrompt {
  readonly system: string;
  /** Tools as the chat template prints them: Python's `json.dumps`. */
  readonly tools: readonly string[];
}

/** JSON text in Python's default spacing, keys in order. */
function toPythonJson(node: JsonNode): string {
  switch (node.kind) {
    case "object":
      return `{${node.entries.map(({ key, value }) => `${JSON.stringify(key)}: ${toPythonJson(value)}`).join(", ")}}`;
    case "array":
      return `[${node.items.map(toPythonJson).join(", ")}]`;
    case "string":
      return JSON.stringify(node.value);
    case "number":
      return pythonNumberText(node.text);
    case "literal":
      return String(node.value);
    default:
      return node satisfies never;
  }
}

/** Runs the harness once in the sandbox and returns what it sent. */
export async function capturePrompt(harness: Harness, sandbox: Sandbox): Promise<CapturedPrompt> {
  let body = "";
  const server = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString("utf8");
    });
    request.on("end", () => {
      const chunk = { id: "x", object: "chat.completion.chunk", model: "m" };
      const send = (choice: object): void => {
        response.write(
          `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, ...choice }] })}\n\n`,
        );
      };
      response.writeHead(200, { "content-type": "text/event-stream" });
      send({ delta: { role: "assistant", content: "Done." } });
      send({ delta: {}, finish_reason: "stop" });
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    await using instance = await sandbox.create({ files: {}, homeFiles: {}, readOnlyPaths: [] });
    await runHarness({
      harness,
      sandboxInstance: instance,
      spec: {
        instruction: "Say done.",
        model: "gimbal-tiny",
        baseUrls: { openai: `${base}/v1`, anthropic: base, google: base },
        key: "sk-gimbal-capture",
        contextTokens: 16_384,
        maxOutputTokens: 512,
      },
      budgets: { wallClockMs: 60_000 },
      signal: new AbortController().signal,
    });
  } finally {
    server.close();
  }
  const request = JSON.parse(body) as { messages: { content: string }[]; tools: unknown[] };
  return {
    system: request.messages[0]?.content ?? "",
    tools: request.tools.map((tool) => toPythonJson(parseJsonText(JSON.stringify(tool)))),
  };
}
