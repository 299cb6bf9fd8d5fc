/** The control API over HTTP, and capture into a store. */
import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { type CapturedCall, GimbalError, type Store } from "@gimbal-rl/core";
import { createMemoryStore } from "@gimbal-rl/store";
import { waitUntil, withTempDir } from "@gimbal-rl/testkit";
import { afterEach, describe, expect, it } from "vitest";
import type { SessionGrant } from "../src/index.js";
import { type Bench, call, chatBody, chatUrl, deferred, post, startBench } from "./support.js";

let bench: Bench;
afterEach(() => bench[Symbol.asyncDispose]());

async function control(
  method: string,
  path: string,
  body?: unknown,
  token: string = bench.gateway.controlToken,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const response = await fetch(`${bench.gateway.controlUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, connection: "close" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe("the control API", () => {
  it("makes, shows, lists and closes sessions", async () => {
    bench = await startBench(() => ({ text: "ok" }), {
      buildTrajectory: (calls, policy) => ({ policy, calls: calls.length }),
    });
    const made = await control("POST", "/v1/sessions", {
      attemptId: "a1",
      taskId: "t1",
      training: true,
      budgets: { maxCalls: 9 },
      labels: { group: "g1" },
    });
    expect(made.status).toBe(201);
    expect(made.body).toEqual({
      sessionId: expect.stringMatching(/^ses-/),
      key: expect.stringMatching(/^sk-gimbal-/),
      baseUrls: {
        openai: `${bench.gateway.url}/v1`,
        anthropic: bench.gateway.url,
        google: bench.gateway.url,
      },
    });
    const grant = made.body as unknown as SessionGrant;
    await call(grant, "x");
    const path = `/v1/sessions/${grant.sessionId}`;
    const shown = await control("GET", path);
    expect(shown.body).toMatchObject({
      attemptId: "a1",
      taskId: "t1",
      state: "open",
      training: true,
      calls: 1,
      labels: { group: "g1" },
    });
    expect(JSON.stringify(shown.body)).not.toContain("sk-gimbal");
    expect((await control("GET", "/v1/sessions")).body).toEqual({ sessions: [shown.body] });
    const calls = (await control("GET", `${path}/calls`)).body as unknown as {
      calls: CapturedCall[];
    };
    expect(calls.calls[0]?.sampledIds.length).toBe(calls.calls[0]?.logprobs.length);
    expect((await control("GET", `${path}/trajectory?policy=strict`)).body).toEqual({
      policy: "strict",
      calls: 1,
    });
    expect((await control("DELETE", path)).body).toMatchObject({ state: "closed" });
    expect((await call(grant, "x")).status).toBe(409);
    expect((await control("GET", `${path}/calls`)).body).toMatchObject(calls);
  });

  it("answers errors as {error:{code,message,details}}", async () => {
    bench = await startBench(() => ({ text: "ok" }), { info: { logprobsAfterTemperature: false } });
    const training = { training: true, sampling: { temperature: 0.7 } };
    for (const [method, path, body, status, code] of [
      ["GET", "/v1/sessions/none", undefined, 404, "session-unknown"],
      ["GET", "/nothing", undefined, 404, "not-found"],
      ["POST", "/v1/sessions", { budgets: { maxCalls: -1 } }, 400, "invalid-request"],
      ["POST", "/v1/sessions", training, 422, "missing-logprobs"],
      ["POST", "/v1/resume", { policyVersion: 3 }, 400, "invalid-request"],
    ] as const) {
      const answer = await control(method, path, body);
      expect(answer.status).toBe(status);
      expect(answer.body).toEqual({
        error: { code, message: expect.any(String), details: expect.any(Object) },
      });
    }
    expect((await control("POST", "/v1/sessions", { training: true })).status).toBe(201);
  });

  it("refuses a training session on an engine that gives no ids", async () => {
    bench = await startBench(() => ({ text: "ok" }), { info: { captureMode: "relay" } });
    expect((await control("POST", "/v1/sessions", { training: true })).status).toBe(422);
    expect((await control("POST", "/v1/sessions", {})).status).toBe(201);
  });

  it("is closed to session keys and wrong tokens; only /healthz is open", async () => {
    bench = await startBench(() => ({ text: "ok" }));
    const { key } = bench.gateway.createSession();
    for (const token of [key, "", "wrong", `${bench.gateway.controlToken}x`]) {
      for (const path of ["/v1/sessions", "/metrics", "/nothing"]) {
        const answer = await control("GET", path, undefined, token);
        expect(answer.status).toBe(401);
        expect(answer.body).toMatchObject({ error: { code: "unauthorized" } });
      }
    }
    const health = await fetch(`${bench.gateway.controlUrl}/healthz`);
    expect([health.status, await health.json()]).toEqual([200, { status: "ok" }]);
  });

  it("pauses after draining, resumes under a version, and counts in /metrics", async () => {
    const gate = deferred();
    bench = await startBench(() => ({ text: "ok", wait: gate.promise }));
    const grant = bench.gateway.createSession();
    const running = call(grant, "x");
    await waitUntil("the call", () => bench.engine.active === 1);
    const pausing = control("POST", "/v1/pause");
    await waitUntil("the pause", () => bench.gateway.isPaused);
    gate.resolve();
    expect((await pausing).body).toEqual({ paused: true, policyVersion: "policy-0" });
    await running;
    expect((await control("POST", "/v1/resume", { policyVersion: "policy-9" })).body).toEqual({
      paused: false,
      policyVersion: "policy-9",
    });
    await call(grant, "y");
    expect(bench.gateway.calls(grant.sessionId)[1]?.policyRuns[0]?.policyVersion).toBe("policy-9");
    const metrics = await fetch(`${bench.gateway.controlUrl}/metrics`, {
      headers: { authorization: `Bearer ${bench.gateway.controlToken}` },
    });
    const text = await metrics.text();
    expect(text).toContain("gimbal_gateway_calls_total 2\n");
    expect(text).toContain("gimbal_gateway_sampled_tokens_total 6\n");
    for (const line of text.trimEnd().split("\n")) {
      expect(line).toMatch(/^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+ \d+)$/);
    }
  });

  it("listens on a Unix socket when asked, and says when a port or socket is taken", async () => {
    await withTempDir(async (dir) => {
      const controlSocket = join(dir, "control.sock");
      bench = await startBench(() => ({ text: "ok" }), { controlSocket });
      expect(bench.gateway.controlUrl).toBe(`unix:${controlSocket}`);
      const status = await new Promise((resolve, reject) => {
        httpRequest({ socketPath: controlSocket, path: "/healthz" }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on("error", reject)
          .end();
      });
      expect(status).toBe(200);
      await expect(startBench([], { controlSocket })).rejects.toMatchObject({
        code: "port-in-use",
      });
      const dataPort = Number(new URL(bench.gateway.url).port);
      await expect(startBench([], { dataPort })).rejects.toMatchObject({
        code: "port-in-use",
        message: expect.stringContaining(String(dataPort)),
      });
    });
  });
});

describe("a pause over HTTP", () => {
  const startHeldCall = async (
    options?: Parameters<typeof startBench>[1],
  ): Promise<{ readonly running: Promise<unknown>; release(): void }> => {
    const gate = deferred();
    bench = await startBench(() => ({ text: "ok", wait: gate.promise }), options);
    const running = call(bench.gateway.createSession(), "x");
    await waitUntil("the call", () => bench.engine.active === 1);
    return { running, release: () => gate.resolve() };
  };

  it("that somebody resumes is a conflict, not a failure", async () => {
    const { running, release } = await startHeldCall();
    const pausing = control("POST", "/v1/pause");
    await waitUntil("the pause", () => bench.gateway.isPaused);
    await control("POST", "/v1/resume");
    expect(await pausing).toMatchObject({ status: 409, body: { error: { code: "aborted" } } });
    release();
    await running;
  });

  it("outlives any number of idle connections", async () => {
    const { running, release } = await startHeldCall({ limits: { maxIdleConnections: 3 } });
    const pausing = control("POST", "/v1/pause");
    await waitUntil("the pause", () => bench.gateway.isPaused);
    const port = Number(new URL(bench.gateway.controlUrl).port);
    let closed = 0;
    const sockets = Array.from({ length: 12 }, () =>
      connect(port, "127.0.0.1")
        .on("error", () => {})
        .on("close", () => {
          closed += 1;
        }),
    );
    await waitUntil("the evictions", () => closed >= 9);
    release();
    expect((await pausing).body).toMatchObject({ paused: true });
    await running;
    for (const socket of sockets) socket.destroy();
  });

  it("stops waiting when its client leaves; the gateway stays paused until it is resumed", async () => {
    const gate = deferred();
    let waits = 0;
    bench = await startBench(() => ({ text: "ok", wait: gate.promise }));
    const { pause } = bench.gateway;
    Object.assign(bench.gateway, {
      pause: (signal?: AbortSignal) => {
        waits += 1;
        return pause(signal).finally(() => {
          waits -= 1;
        });
      },
    });
    const running = call(bench.gateway.createSession(), "x");
    await waitUntil("the call", () => bench.engine.active === 1);
    const leaving = new AbortController();
    const pausing = fetch(`${bench.gateway.controlUrl}/v1/pause`, {
      method: "POST",
      headers: { authorization: `Bearer ${bench.gateway.controlToken}` },
      signal: leaving.signal,
    });
    await waitUntil("the pause", () => waits === 1);
    leaving.abort();
    await expect(pausing).rejects.toThrow();
    await waitUntil("the end of the wait", () => waits === 0);
    expect(bench.gateway.isPaused).toBe(true);
    gate.resolve();
    await running;
  });
});

describe("errors on the control port", () => {
  it.each([
    ["unauthorized", 401],
    ["unavailable", 503],
    ["aborted", 409],
    ["bad-usage", 500],
  ] as const)("%s has status %i and keeps its code", async (code, status) => {
    bench = await startBench(() => ({ text: "ok" }), {
      buildTrajectory: () => {
        throw new GimbalError(code, "no");
      },
    });
    const { sessionId } = bench.gateway.createSession();
    expect(await control("GET", `/v1/sessions/${sessionId}/trajectory`)).toMatchObject({
      status,
      body: { error: { code, message: "no" } },
    });
  });
});

describe("capture into a store", () => {
  it("keeps the record under its call id and both bodies byte for byte", async () => {
    const store = createMemoryStore();
    bench = await startBench(() => ({ text: "äöü" }), { store });
    const grant = bench.gateway.createSession();
    const raw = `{"model":"m",  "n":1.0, "messages":[{"role":"user","content":"\\u00e4"}],"stream":true}`;
    const exchange = post(chatUrl(grant), grant.key, raw);
    const text = await exchange.text;
    await bench.gateway.closeSession(grant.sessionId);
    const [record] = bench.gateway.calls(grant.sessionId);
    const stored = await store.get("call-end", `${grant.sessionId}.0`);
    expect(stored?.data).toEqual(record);
    if (record?.requestBlob == null || record.responseBlob === null) throw new Error("no blobs");
    expect(new TextDecoder().decode(await store.getBlob(record.requestBlob))).toBe(raw);
    expect(new TextDecoder().decode(await store.getBlob(record.responseBlob))).toBe(text);
  });

  it("that fails does not break the call, and flags the session", async () => {
    const failures: Error[] = [];
    const broken: Store = {
      ...createMemoryStore(),
      append: () => Promise.reject(new Error("disk full")),
    };
    bench = await startBench(() => ({ text: "ok" }), {
      store: broken,
      onCaptureError: (error) => failures.push(error),
    });
    const grant = bench.gateway.createSession({ training: true });
    expect((await call(grant, "x")).status).toBe(200);
    const info = await bench.gateway.closeSession(grant.sessionId);
    expect(info.captureFailures).toBe(1);
    expect(failures.map((error) => error.message)).toEqual(["disk full"]);
  });

  it("is complete when the session is closed, however slow the store is", async () => {
    const gate = deferred();
    const memory = createMemoryStore();
    const slow: Store = {
      ...memory,
      append: async (...event) => {
        await gate.promise;
        return memory.append(...event);
      },
    };
    bench = await startBench(() => ({ text: "ok" }), { store: slow });
    const grant = bench.gateway.createSession();
    expect((await call(grant, "x")).status).toBe(200);
    const closing = bench.gateway.closeSession(grant.sessionId);
    gate.resolve();
    await closing;
    expect(await memory.get("call-end", `${grant.sessionId}.0`)).not.toBeNull();
  });
});

describe("disposing", () => {
  it("stops calls, frees ports and leaves no timer", async () => {
    bench = await startBench(() => ({ text: "ok", wait: new Promise(() => {}) }));
    const grant = bench.gateway.createSession();
    const stream = post(chatUrl(grant), grant.key, chatBody("x", { stream: true }));
    await waitUntil("the call", () => bench.engine.active === 1);
    await bench.gateway[Symbol.asyncDispose]();
    expect(bench.engine.active).toBe(0);
    expect(bench.clock.pendingTimers).toBe(0);
    await expect(fetch(bench.gateway.url)).rejects.toThrow();
    stream.destroy();
  });
});
