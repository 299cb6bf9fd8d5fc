/**
 * Law: through the official `openai` SDK a call of the local engine answers the same and stores the same record,
 * streamed or not, alone or beside others: what is sampled depends on the run's seed, the attempt and the prompt alone.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AttemptId, asId, type CapturedCall, type PolicyVersion } from "@gimbal-rl/core";
import { openAiChat } from "@gimbal-rl/dialects";
import { createLocalEngine, type LocalEngine } from "@gimbal-rl/engine";
import { createGateway, type Gateway } from "@gimbal-rl/proxy";
import { createTape } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeScribePolicy } from "./support/scribe-policy.js";

const tools: OpenAI.ChatCompletionTool[] = [
  {
    type: "function",
    function: {
      name: "write",
      description: "Write a file.",
      parameters: {
        type: "object",
        required: ["path", "content"],
        properties: { path: { type: "string" }, content: { type: "string" } },
      },
    },
  },
];

let modelDir = "";
let engine: LocalEngine;
let gateway: Gateway;

beforeAll(async () => {
  modelDir = await mkdtemp(join(tmpdir(), "gimbal-sdk-"));
  await writeScribePolicy(modelDir);
  const policyVersion = asId<PolicyVersion>("step-0");
  engine = await createLocalEngine({ modelDir, model: "scribe", policyVersion });
  const renderer = await loadRendererFromFolder(modelDir);
  gateway = await createGateway({
    ...{ engine, renderer, createTape, dialects: [openAiChat], seed: 11 },
  });
});

afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  await rm(modelDir, { recursive: true, force: true });
});

/** Everything of a record that does not say when, where or over which transport it happened. */
type Sameness = Partial<CapturedCall>;

/** Two turns of an agent: ask, answer the tool calls, ask again. */
async function converse(attempt: string, stream: boolean): Promise<Sameness[]> {
  const attemptId = asId<AttemptId>(attempt);
  const grant = gateway.createSession({ attemptId, training: true });
  const client = new OpenAI({ baseURL: grant.baseUrls.openai, apiKey: grant.key, maxRetries: 0 });
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: "Go on." }];
  for (let turn = 0; turn < 2; turn += 1) {
    const body = { model: "scribe", messages, tools, max_completion_tokens: 60 };
    const completion = stream
      ? await client.chat.completions
          .stream({ ...body, stream_options: { include_usage: true } })
          .finalChatCompletion()
      : await client.chat.completions.create(body);
    const choice = completion.choices[0];
    if (choice === undefined) throw new Error("No choice.");
    const calls = choice.message.tool_calls ?? [];
    expect(choice.finish_reason).toBe(calls.length > 0 ? "tool_calls" : "stop");
    expect(completion.usage?.completion_tokens).toBe(
      gateway.calls(grant.sessionId).at(-1)?.sampledIds.length,
    );
    messages.push(choice.message);
    for (const { id } of calls)
      messages.push({ role: "tool", tool_call_id: id, content: "Wrote." });
    if (calls.length === 0) messages.push({ role: "user", content: "More." });
  }
  await gateway.closeSession(grant.sessionId);
  return gateway.calls(grant.sessionId).map((call) => {
    const { conversation, finishReason, issues, logprobs, message, promptIds } = call;
    const { policyRuns, sampledIds, samplingApplied, seed } = call;
    const { parentCallId: _, ...tape } = call.tape;
    expect([sampledIds.length, logprobs.length]).toEqual(
      Array(2).fill(call.usage.completionTokens),
    );
    return {
      ...{ conversation, finishReason, issues, logprobs, message, promptIds },
      ...{ policyRuns, sampledIds, samplingApplied, seed },
      tape: { ...tape, parentCallId: null },
    };
  });
}

test("a streamed conversation leaves the record of a plain one", async () => {
  const plain = await converse("one", false);
  expect(await converse("one", true)).toEqual(plain);
  expect(plain).toHaveLength(2);
  expect(plain[1]?.tape?.reusedTokens).toBe(
    (plain[0]?.promptIds?.length ?? 0) + (plain[0]?.sampledIds?.length ?? 0),
  );
});

test("eight conversations at once sample what each samples alone", async () => {
  const names = Array.from({ length: 8 }, (_, i) => `attempt-${i}`);
  const together = await Promise.all(names.map((name, i) => converse(name, i % 2 === 0)));
  const alone: Sameness[][] = [];
  for (const name of names) alone.push(await converse(name, false));
  expect(together).toEqual(alone);
  // They are different draws, so the equality above compares something.
  expect(new Set(alone.map((calls) => JSON.stringify(calls[0]?.sampledIds))).size).toBeGreaterThan(
    1,
  );
  expect(alone.flat().some(({ message }) => message?.parts.at(-1)?.type === "tool-call")).toBe(
    true,
  );
});
