import { describe, expect, it } from "vitest";
import { startScriptedServer } from "./scripted-server.js";

async function ask(url: string, messages: readonly unknown[]): Promise<string> {
  const response = await fetch(`${url}/chat/completions`, {
    method: "POST",
    headers: { authorization: "Bearer k" },
    body: JSON.stringify({ model: "m", messages }),
  });
  return `${response.status} ${await response.text()}`;
}

describe("startScriptedServer", () => {
  it("plays the turn that follows from the number of tool results, again for a retry", async () => {
    await using server = await startScriptedServer([
      { type: "tool", name: "bash", arguments: { command: "ls" } },
      { type: "text", text: "fine" },
    ]);
    const first = await ask(server.url, [{ role: "user" }]);
    expect(first).toContain('"name":"bash"');
    expect(first).toContain('"finish_reason":"tool_calls"');
    expect(await ask(server.url, [{ role: "user" }])).toBe(first);
    expect(await ask(server.url, [{ role: "tool" }])).toContain('"content":"fine"');
    expect(server.requests.map(({ authorization }) => authorization)).toEqual(
      Array(3).fill("Bearer k"),
    );
  });

  it("answers with a status, or sends headers and then nothing", async () => {
    await using server = await startScriptedServer([
      { type: "status", status: 400, body: { error: 1 } },
    ]);
    expect(await ask(server.url, [])).toBe('400 {"error":1}');
    await using silent = await startScriptedServer([{ type: "silence" }]);
    const controller = new AbortController();
    const response = await fetch(`${silent.url}/chat/completions`, {
      method: "POST",
      body: "{}",
      signal: controller.signal,
    });
    expect(response.status).toBe(200);
    controller.abort();
    await expect.poll(() => silent.abandoned()).toBe(1);
  });
});
