/**
 * Gateway overhead per call: time from request to answer with an engine that answers at once, minus a bare
 * `node:http` server that answers the same bytes. Run: `npx tsx --conditions=@gimbal-rl/source bench/overhead.ts`.
 * Then memory: resident size before and after many calls and with many open streams.
 */
import { Agent, createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { asId, type Engine, type PolicyVersion } from "@gimbal-rl/core";
import { openAiChat } from "@gimbal-rl/dialects";
import { createTape, loadRenderer } from "@gimbal-rl/renderers";
import { createTestModelTexts } from "@gimbal-rl/testkit";
import { createGateway } from "../src/index.js";

const renderer = loadRenderer(createTestModelTexts());
const agent = new Agent({ keepAlive: true, maxSockets: 2000 });

function send(url: string, key: string, body: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const call = request(url, {
      method: "POST",
      agent,
      headers: { authorization: `Bearer ${key}`, "content-length": Buffer.byteLength(body) },
    });
    call.on("error", reject);
    call.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve(text));
    });
    call.end(body);
  });
}

const percentile = (values: number[], part: number): string => {
  values.sort((a, b) => a - b);
  return (values[Math.floor((values.length - 1) * part)] ?? 0).toFixed(2);
};

async function time(
  label: string,
  url: string,
  key: string,
  bodies: readonly string[],
): Promise<void> {
  const warm = Math.min(50, Math.floor(bodies.length / 4));
  const times: number[] = [];
  for (const [i, body] of bodies.entries()) {
    const start = performance.now();
    await send(url, key, body);
    if (i >= warm) times.push(performance.now() - start);
  }
  console.log(
    `${label}: p50 ${percentile(times, 0.5)} ms, p95 ${percentile(times, 0.95)} ms (${times.length} calls)`,
  );
}

const policyVersion = asId<PolicyVersion>("policy-0");
let active = 0;
let wait: Promise<void> = Promise.resolve();

/** Answers "ok" at once (or when `wait` resolves) and keeps nothing. */
const engine: Engine = {
  info: {
    id: "instant",
    model: "instant",
    captureMode: "tokens",
    contextLength: 1_000_000,
    vocabularySize: renderer.tokenizer.vocabularySize,
    logprobsAfterTemperature: true,
  },
  policyVersion: () => policyVersion,
  generate: async function* () {
    active += 1;
    yield { type: "tokens-delta", ids: [111, 107], logprobs: [-1, -1], policyVersion };
    await wait;
    yield { type: "tokens-delta", ids: [258], logprobs: [-1], policyVersion };
    yield { type: "generate-end", reason: "stop", cachedTokens: 0 };
    active -= 1;
  },
  [Symbol.asyncDispose]: async () => {},
};
const gateway = await createGateway({ engine, renderer, createTape, dialects: [openAiChat] });
const bare = createServer((incoming, response) => {
  incoming.on("data", () => {});
  incoming.on("end", () => response.end('{"choices":[]}'));
});
await new Promise<void>((resolve) => bare.listen(0, "127.0.0.1", resolve));
const bareUrl = `http://127.0.0.1:${(bare.address() as AddressInfo).port}/`;

/** An agent's history: every call adds a turn, so that all but the first prompt continue the tape. */
function growingHistory(startChars: number, calls: number): string[] {
  const messages: object[] = [{ role: "user", content: "word ".repeat(startChars / 5) }];
  return Array.from({ length: calls }, (_, i) => {
    const body = JSON.stringify({ model: "m", messages, stream: true });
    messages.push({ role: "assistant", content: "ok" }, { role: "user", content: `next ${i}` });
    return body;
  });
}

for (const [name, chars, calls] of [
  ["1 kB", 1000, 400],
  ["40 kB", 40_000, 200],
  ["200 kB", 200_000, 80],
] as const) {
  const bodies = growingHistory(chars, calls);
  await time(`bare node:http, ${name}`, bareUrl, "", bodies);
  const grant = gateway.createSession();
  await time(`gateway, ${name}`, `${grant.baseUrls.openai}/chat/completions`, grant.key, bodies);
  await gateway.closeSession(grant.sessionId);
}

const rss = (): string => {
  globalThis.gc?.();
  return `${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB`;
};
console.log(`resident before 10,000 calls: ${rss()}`);
const start = performance.now();
for (let session = 0; session < 100; session += 1) {
  const grant = gateway.createSession();
  const bodies = growingHistory(1000, 10);
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      for (const body of bodies)
        await send(`${grant.baseUrls.openai}/chat/completions`, grant.key, body);
    }),
  );
  await gateway.closeSession(grant.sessionId);
}
console.log(
  `resident after: ${rss()}; ${(10_000 / ((performance.now() - start) / 1000)).toFixed(0)} calls/s`,
);

let release = (): void => {};
wait = new Promise<void>((resolve) => {
  release = resolve;
});
const grants = Array.from({ length: 100 }, () => gateway.createSession());
const open = grants.flatMap((grant) =>
  Array.from({ length: 10 }, (_, i) =>
    send(
      `${grant.baseUrls.openai}/chat/completions`,
      grant.key,
      growingHistory(1000 + i, 1)[0] ?? "",
    ),
  ),
);
while (active < 1000) await new Promise((resolve) => setTimeout(resolve, 20));
console.log(`1,000 open streams: ${rss()} (client included)`);
release();
await Promise.all(open);
await gateway[Symbol.asyncDispose]();
agent.destroy();
bare.close();
