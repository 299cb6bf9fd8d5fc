/** `proxy` and `serve` as a user starts them, on a random model. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitUntil } from "@gimbal-rl/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createModelFolder, gimbal, type Running, start } from "./support.js";

let folder = "";
let modelDir = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gimbal-cli-"));
  modelDir = await createModelFolder(join(folder, "model"));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Waits for the one JSON line. */
async function readyLine(running: Running): Promise<Record<string, string | number>> {
  const failed = running.ended.then(({ stderr }) => {
    throw new Error(`The server ended: ${stderr}`);
  });
  failed.catch(() => {});
  await Promise.race([
    failed,
    waitUntil("the line on stdout", () => running.stdout().endsWith("\n"), 20_000),
  ]);
  return JSON.parse(running.stdout());
}

async function ask(url: string, body: object, key = "none"): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${key}`, connection: "close" };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  return (await answer.json()) as Record<string, unknown>;
}

test("serve prints one line, takes ids and gives ids back, and ends with 0 when stopped", async () => {
  const running = start("serve", "--model", modelDir, "--json");
  const line = await readyLine(running);
  expect(Object.keys(line)).toEqual(["url", "model", "pid"]);
  expect(line).toMatchObject({ model: "model", pid: process.pid });
  const request = {
    prompt: [72, 105],
    max_tokens: 4,
    seed: 1,
    logprobs: 1,
    return_token_ids: true,
  };
  const first = await ask(`${line.url}/v1/completions`, request);
  const again = await ask(`${line.url}/v1/completions`, request);
  expect(first.prompt_token_ids).toEqual([72, 105]);
  expect(first.usage).toMatchObject({ prompt_tokens: 2 });
  expect(again.choices).toEqual(first.choices);
  running.stop();
  const { exitCode, stdout } = await running.ended;
  expect(exitCode).toBe(0);
  expect(stdout.split("\n")).toHaveLength(2);
});

test("proxy captures a call, keeps it in the store and forgets nothing when stopped", async () => {
  const store = join(folder, "store");
  const running = start(
    ...["proxy", "--model", modelDir, "--store", store, "--control-token", "t0ken", "--json"],
  );
  const line = await readyLine(running);
  expect(Object.keys(line)).toEqual(["url", "controlUrl", "controlToken", "pid"]);
  expect(line.controlToken).toBe("t0ken");
  const session = await ask(`${line.controlUrl}/v1/sessions`, { training: true }, "t0ken");
  const chat = { model: "m", max_tokens: 5, messages: [{ role: "user", content: "Hi" }] };
  const answer = await ask(`${line.url}/v1/chat/completions`, chat, session.key as string);
  const usage = answer.usage as { completion_tokens: number };
  const read = async (part: string): Promise<unknown> => {
    const url = `${line.controlUrl}/v1/sessions/${session.sessionId}/${part}`;
    const headers = { authorization: "Bearer t0ken", connection: "close" };
    return (await fetch(url, { headers })).json();
  };
  const { calls } = (await read("calls")) as { calls: { sampledIds: number[] }[] };
  expect(calls[0]?.sampledIds).toHaveLength(usage.completion_tokens);
  expect(await read("trajectory?policy=strict")).toMatchObject({ fidelity: { coverage: 1 } });
  expect(await read("trajectory?policy=polar")).toMatchObject({
    error: { code: "invalid-request" },
  });
  running.stop();
  expect((await running.ended).exitCode).toBe(0);
  const { stdout } = await gimbal("validate", store, "--json");
  expect(JSON.parse(stdout)).toMatchObject({ ok: true, counts: { calls: 1, blobs: 2 } });
});

test("without --json people get a recipe that names the addresses", async () => {
  const running = start("proxy", "--model", modelDir);
  await waitUntil("the recipe", () => running.stdout().includes("/calls"), 20_000);
  expect(running.stdout()).toMatch(/curl http:\/\/127\.0\.0\.1:\d+\/v1\/sessions -H/);
  running.stop();
  await running.ended;
});
