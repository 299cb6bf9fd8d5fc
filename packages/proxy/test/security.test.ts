/** Keys, sessions and clients that mean harm: what each of them can reach, and that the others do not notice. */
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { settle, waitUntil } from "@gimbal-rl/testkit";
import { afterEach, describe, expect, it } from "vitest";
import type { SessionGrant } from "../src/index.js";
import { type Bench, call, chatBody, chatUrl, deferred, post, startBench } from "./support.js";

let bench: Bench;
afterEach(() => bench[Symbol.asyncDispose]());

const start = async (options?: Parameters<typeof startBench>[1]): Promise<SessionGrant> => {
  bench = await startBench(() => ({ text: "ok" }), options);
  return bench.gateway.createSession();
};

describe("a key", () => {
  it.each<[string, (grant: SessionGrant) => [string, Record<string, string>]]>([
    ["Bearer", (g) => [chatUrl(g), { authorization: `Bearer ${g.key}` }]],
    ["x-api-key", (g) => [chatUrl(g), { "x-api-key": g.key }]],
    ["x-goog-api-key", (g) => [chatUrl(g), { "x-goog-api-key": g.key }]],
    ["?key=", (g) => [`${chatUrl(g)}?key=${g.key}`, {}]],
    ["a path prefix", (g) => [`${bench.gateway.url}/s/${g.key}/v1/chat/completions`, {}]],
  ])("opens its session as %s", async (_name, make) => {
    const grant = await start();
    const [url, headers] = make(grant);
    expect(await post(url, "", chatBody("x"), headers).status).toBe(200);
    expect(bench.gateway.calls(grant.sessionId)).toHaveLength(1);
  });

  it.each<[string, (grant: SessionGrant) => [string, Record<string, string>]]>([
    ["absent", (g) => [chatUrl(g), {}]],
    ["unknown", (g) => [chatUrl(g), { authorization: "Bearer sk-gimbal-guess" }]],
    ["the session id", (g) => [chatUrl(g), { authorization: `Bearer ${g.sessionId}` }]],
    ["only in x-session-id", (g) => [chatUrl(g), { "x-session-id": g.key }]],
    [
      "the control token",
      (g) => [chatUrl(g), { authorization: `Bearer ${bench.gateway.controlToken}` }],
    ],
    [
      "cut by one character",
      (g) => [chatUrl(g), { authorization: `Bearer ${g.key.slice(0, -1)}` }],
    ],
    [
      "foreign in the path though right in the header",
      (g) => [
        `${bench.gateway.url}/s/sk-gimbal-other/v1/chat/completions`,
        { authorization: `Bearer ${g.key}` },
      ],
    ],
  ])("that is %s gets 401 in the dialect's shape", async (_name, make) => {
    const grant = await start();
    const [url, headers] = make(grant);
    const exchange = post(url, "", chatBody("x"), headers);
    expect(await exchange.status).toBe(401);
    expect(JSON.parse(await exchange.text)).toMatchObject({
      error: { message: expect.any(String), type: expect.any(String) },
    });
    expect(bench.engine.requests).toHaveLength(0);
  });

  it("of a closed session gets 409 and no retry, and running calls of it are stopped", async () => {
    const gate = deferred();
    bench = await startBench(() => ({ text: "ok", wait: gate.promise }));
    const grant = bench.gateway.createSession();
    const running = call(grant, "x");
    await waitUntil("the call", () => bench.engine.active === 1);
    const info = await bench.gateway.closeSession(grant.sessionId);
    expect(info).toMatchObject({ state: "closed", inFlight: 0, calls: 1 });
    expect((await running).status).toBe(409);
    expect(bench.engine.active).toBe(0);
    const late = post(chatUrl(grant), grant.key, chatBody("x"));
    expect(await late.status).toBe(409);
    expect((await late.headers)["x-should-retry"]).toBe("false");
    expect(bench.gateway.calls(grant.sessionId)[0]).toMatchObject({ issues: ["aborted", "empty"] });
    expect(await bench.gateway.closeSession(grant.sessionId)).toMatchObject({ state: "closed" });
  });
});

describe("two sessions side by side", () => {
  it("never see each other's calls, tape or budget", async () => {
    bench = await startBench(({ request: asked, sessionCallIndex }) => ({
      text: `${asked.sessionId} turn ${sessionCallIndex}`,
    }));
    const grants = [1, 2].map(() => bench.gateway.createSession({ budgets: { maxCalls: 5 } }));
    const histories = grants.map((): Record<string, string>[] => [
      { role: "user", content: "same" },
    ]);
    for (let turn = 0; turn < 5; turn += 1) {
      await Promise.all(
        grants.map(async (grant, i) => {
          const messages = histories[i] ?? [];
          const { body } = await call(grant, "", { messages });
          const choices = body.choices as { message: { content: string } }[];
          const content = choices[0]?.message.content ?? "";
          expect(content).toBe(`${grant.sessionId} turn ${turn}`);
          messages.push({ role: "assistant", content }, { role: "user", content: `next ${turn}` });
        }),
      );
    }
    for (const grant of grants) {
      const calls = bench.gateway.calls(grant.sessionId);
      expect(calls.map((found) => found.sessionId)).toEqual(Array(5).fill(grant.sessionId));
      expect(calls.map((found) => found.tape.parentCallId)).toEqual([
        null,
        ...calls.slice(0, -1).map((found) => found.callId),
      ]);
    }
  });
});

describe("a hostile client", () => {
  it("with a body of 100 MB is refused without reading it, and others go on", async () => {
    const grant = await start({ limits: { maxBodyBytes: 100_000 } });
    const declared = request(chatUrl(grant), {
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${grant.key}`, "content-length": "100000000" },
    });
    declared.on("error", () => {});
    const status = new Promise((resolve) =>
      declared.once("response", (r) => resolve(r.statusCode)),
    );
    declared.write("{");
    expect(await status).toBe(400);
    declared.destroy();
    expect((await call(grant, "x")).status).toBe(200);
  });

  it("with a chunked body above the limit gets a clear 400, and nothing of it is kept", async () => {
    const grant = await start({ limits: { maxBodyBytes: 10_000 } });
    const exchange = post(chatUrl(grant), grant.key, chatBody("y".repeat(20_000)));
    expect(await exchange.status).toBe(400);
    expect(await exchange.text).toContain("larger than 10000 bytes");
    expect((await call(grant, "x")).status).toBe(200);
  });

  it("that streams a body without end is cut off with a clear 400", async () => {
    const grant = await start({ limits: { maxBodyBytes: 10_000 } });
    const endless = request(chatUrl(grant), {
      method: "POST",
      agent: false,
      headers: { authorization: `Bearer ${grant.key}` },
    });
    let isOver = false;
    endless.on("error", () => {
      isOver = true;
    });
    const pump = (): void => {
      if (!isOver && endless.write("z".repeat(4000))) setImmediate(pump);
      else if (!isOver) endless.once("drain", pump);
    };
    pump();
    const status = await new Promise((resolve) => {
      endless.once("response", (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    });
    expect(status).toBe(400);
    expect((await call(grant, "x")).status).toBe(200);
    await bench.clock.advance(1000);
    await waitUntil("the cut", () => isOver || endless.destroyed);
    isOver = true;
    endless.destroy();
  });

  it.each([
    ["garbage", "{{{{"],
    ["an array", "[1,2]"],
    ["deep nesting", "[".repeat(50_000)],
    ["bytes that are not UTF-8", new Uint8Array([0x7b, 0xff, 0xfe, 0x7d])],
    ["nothing", ""],
  ])("that sends %s gets 400 and the gateway lives", async (_name, body) => {
    const grant = await start();
    expect(await post(chatUrl(grant), grant.key, body).status).toBe(400);
    expect((await call(grant, "x")).status).toBe(200);
  });

  it("that compresses its body is told not to", async () => {
    const grant = await start();
    const exchange = post(chatUrl(grant), grant.key, "x", { "content-encoding": "gzip" });
    expect(await exchange.status).toBe(400);
    expect(await exchange.text).toContain("content-encoding");
  });

  it("that opens connections and sends half requests loses the oldest ones, not the others", async () => {
    const gate = deferred();
    bench = await startBench(() => ({ text: "ok", wait: gate.promise }), {
      limits: { maxIdleConnections: 5 },
    });
    const grant = bench.gateway.createSession();
    const running = call(grant, "x");
    await waitUntil("the call", () => bench.engine.active === 1);
    const port = Number(new URL(bench.gateway.url).port);
    const closed: Socket[] = [];
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      socket.on("close", () => closed.push(socket));
      socket.write("POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-le");
      return socket;
    });
    await waitUntil("the evictions", () => closed.length >= 15);
    gate.resolve();
    expect((await running).status).toBe(200);
    expect((await call(grant, "y")).status).toBe(200);
    for (const socket of sockets) socket.destroy();
  });

  it("that stops in the middle of its body holds only its own place", async () => {
    const grant = await start({ limits: { maxOpenRequestsPerSession: 3 } });
    const other = bench.gateway.createSession();
    const halves = Array.from({ length: 3 }, () => {
      const half = request(chatUrl(grant), {
        method: "POST",
        agent: false,
        headers: { authorization: `Bearer ${grant.key}`, "content-length": "1000" },
      });
      half.on("error", () => {});
      half.write("{");
      return half;
    });
    await waitUntil("three halves", () => bench.gateway.metrics().includes("requests_total 3"));
    const refused = post(chatUrl(grant), grant.key, chatBody("x"));
    expect(await refused.status).toBe(503);
    // Its own doing; "unavailable" would make the rollout blame the engine and run the attempt again.
    expect(bench.gateway.session(grant.sessionId).refusals).toEqual({ "session-busy": 1 });
    expect((await call(other, "x")).status).toBe(200);
    for (const half of halves) half.destroy();
    await settle();
    await waitUntil("free places", () => bench.gateway.metrics().includes("connections 0"));
    expect((await call(grant, "x")).status).toBe(200);
  });

  it("that repeats refused requests without end is refused unread in the end", async () => {
    const grant = await start({ limits: { maxRefusedRequestsPerSession: 3 } });
    const other = bench.gateway.createSession();
    const texts: string[] = [];
    for (let i = 0; i < 5; i += 1) {
      texts.push(await post(chatUrl(grant), grant.key, "nonsense").text);
    }
    expect(texts.map((text) => text.includes("Stop now"))).toEqual([
      false,
      false,
      false,
      true,
      true,
    ]);
    expect((await call(other, "x")).status).toBe(200);
  });

  it("finds nothing else on the data port", async () => {
    const grant = await start();
    for (const path of ["/v1/sessions", "/metrics", "/healthz", "/", "/v1/pause"]) {
      const exchange = post(`${bench.gateway.url}${path}`, grant.key, "{}");
      expect(await exchange.status).toBe(404);
      expect(await post(`${bench.gateway.url}${path}`, "", "{}").status).toBe(401);
    }
    expect(bench.gateway.isPaused).toBe(false);
  });

  it("that asks for a WebSocket gets 426 and a closed connection", async () => {
    const grant = await start();
    const socket = connect(Number(new URL(bench.gateway.url).port), "127.0.0.1");
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString();
    });
    socket.write(
      `GET /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${grant.key}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`,
    );
    await new Promise((resolve) => socket.once("close", resolve));
    expect(received).toMatch(/^HTTP\/1\.1 426 /);
  });
});
