/**
 * Law: what the real, unmodified Pi does through the gateway is captured completely and exactly: ids, log-probabilities,
 * usage and raw bodies of every call, one tape without a fork, every sampled token trainable.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Attempt,
  type AttemptId,
  asId,
  type CapturedCall,
  type PolicyVersion,
  type SandboxLevel,
  type Store,
  systemTimerClock,
  type Task,
  type TaskId,
} from "@gimbal-rl/core";
import { openAiChat } from "@gimbal-rl/dialects";
import { tinyHarness, tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { buildTrajectory } from "@gimbal-rl/graph";
import { defaultCacheDir } from "@gimbal-rl/harness-pi";
import { createGateway, type Gateway } from "@gimbal-rl/proxy";
import { createTape } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { type AttemptRecord, planGroup, runAttempt } from "@gimbal-rl/rollout";
import { createSandbox } from "@gimbal-rl/sandbox";
import { stablePathRules } from "@gimbal-rl/sdk";
import { openStore } from "@gimbal-rl/store";
import {
  createScriptedEngine,
  parseChatChunks,
  type ScriptedEngine,
  scriptedLogprobs,
} from "@gimbal-rl/testkit";
import { createVerifiers } from "@gimbal-rl/verifiers";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { preparePi } from "./support/pi.js";

const levels: readonly SandboxLevel[] =
  createSandbox().level === "namespace" ? ["namespace", "process"] : ["process"];

const call = (name: string, argumentsText: string): string =>
  `<tool_call>\n{"name": "${name}", "arguments": ${argumentsText}}\n</tool_call>`;
/** Odd spacing and a float: what a JSON round trip in the harness would destroy. */
const turns = [
  `I look first.\n${call("bash", '{"command":  "ls",   "timeout": 5.0}')}`,
  call("read", '{"path": "greeting.txt"}'),
  call(
    "edit",
    '{"path": "greeting.txt", "edits": [{"oldText": "hello", "newText": "gr\\u00fc\\u00df dich"}]}',
  ),
  call("write", '{"path": "notes/done.txt", "content": "done\\n"}'),
  "The greeting is changed.",
];

const task: Task = {
  taskId: asId<TaskId>("captured/greeting"),
  suite: "captured",
  family: "captured",
  split: "train",
  instruction: "Change hello in greeting.txt.",
  files: { "greeting.txt": "hello world\n" },
  protectedPaths: [],
  gradingFiles: {},
  verifier: {
    kind: "file-state-equals",
    options: { files: { "greeting.txt": "grüß dich world\n", "notes/done.txt": "done\n" } },
  },
  budgets: { maxCalls: 10, wallClockMs: 60_000 },
};
const policyVersion = asId<PolicyVersion>("policy-0");

for (const level of levels) {
  const sandbox = createSandbox({ level });
  const pi = await preparePi(sandbox);
  if (typeof pi === "string") process.stderr.write(`captured-session: skipped (${pi})\n`);
  describe.skipIf(typeof pi === "string")(`Pi ${tinyHarness.version} at level ${level}`, () => {
    let root = "";
    let store: Store;
    let engine: ScriptedEngine;
    let gateway: Gateway;
    let records: readonly AttemptRecord[];
    /** Stored calls of each attempt. */
    let captured: readonly (readonly CapturedCall[])[];
    let expectedIds: readonly (readonly number[])[];

    beforeAll(async () => {
      if (typeof pi === "string") return;
      root = await mkdtemp(join(tmpdir(), "gimbal-captured-"));
      store = await openStore(join(root, "run"));
      const renderer = await loadRendererFromFolder(tinyModelDir);
      const encode = (text: string): number[] =>
        renderer.tokenizer.encode(text, { allowSpecial: true });
      const [endOfTurn = -1] = encode("<|im_end|>");
      expectedIds = turns.map((text) => [...encode(text), endOfTurn]);
      engine = createScriptedEngine({
        encode,
        script: ({ sessionCallIndex }) => ({
          text: turns[sessionCallIndex] ?? "",
          cachedTokens: 3,
        }),
        info: { vocabularySize: renderer.tokenizer.vocabularySize, contextLength: 16_384 },
      });
      gateway = await createGateway({
        ...{ engine, renderer, createTape, store, dialects: [openAiChat], seed: 1 },
        volatileRules: stablePathRules(tmpdir(), defaultCacheDir()),
      });
      const plan = planGroup({ label: "captured", task, size: 2, runSeed: 1, policyVersion });
      const run = (attempt: Attempt): Promise<AttemptRecord> =>
        runAttempt(
          {
            ...{
              sessions: gateway,
              harness: pi,
              sandbox,
              clock: systemTimerClock,
              model: "gimbal-tiny",
            },
            verifiers: createVerifiers({ nodePath: process.execPath }),
            contextTokens: 16_384,
            maxOutputTokens: 1024,
            maxOutputBytes: 8 * 1024 * 1024,
            wallClockMs: 60_000,
            temperature: 1,
          },
          task,
          attempt,
          true,
          new AbortController().signal,
        );
      records = await Promise.all(plan.attempts.map(run));
      const stored: CapturedCall[] = [];
      for await (const event of store.read({ kind: "call-end" })) {
        stored.push(event.data as CapturedCall);
      }
      captured = records.map(({ sessionId }) =>
        stored.filter((one) => one.sessionId === sessionId).sort((a, b) => a.index - b.index),
      );
    }, 120_000);

    afterAll(async () => {
      if (typeof pi === "string") return;
      await gateway[Symbol.asyncDispose]();
      await store.close();
      await rm(root, { recursive: true, force: true });
    });

    it("executes the scripted calls and is judged by the state it leaves", () => {
      for (const { calls, failureClass, outcome, verdict } of records) {
        expect(verdict.evidence.filter(({ passed }) => !passed)).toEqual([]);
        expect({ calls, failureClass }).toEqual({ calls: turns.length, failureClass: "none" });
        expect(outcome).toMatchObject({ status: "completed", finalText: turns.at(-1) });
        expect(outcome).toMatchObject({ toolCalls: 4, toolErrors: 0 });
      }
    });

    it("leaves ids, log-probabilities and usage that agree in every call", () => {
      for (const calls of captured) {
        expect(calls.map(({ sampledIds }) => sampledIds)).toEqual(expectedIds);
        for (const one of calls) {
          expect(one.logprobs).toEqual(scriptedLogprobs(one.sampledIds));
          expect(one.usage).toEqual({
            promptTokens: one.promptIds.length,
            completionTokens: one.sampledIds.length,
            cachedTokens: 3,
          });
          expect(one.policyRuns).toEqual([{ policyVersion, tokens: one.sampledIds.length }]);
          expect(one.samplingApplied).toMatchObject({ temperature: 1, topP: 1, topK: 0 });
          expect(one.issues).toEqual([]);
          const asked = engine.requests.filter(({ sessionId }) => sessionId === one.sessionId);
          expect(asked[one.index]?.promptIds).toEqual(one.promptIds);
        }
      }
    });

    it("is one tape: each prompt is what came before, id by id, and something new", () => {
      for (const calls of captured) {
        expect(calls[0]?.tape).toEqual({
          ...{ parentCallId: null, reusedTokens: 0, rewritten: [], forkReason: null },
        });
        calls.slice(1).forEach((one, i) => {
          const before = [...(calls[i]?.promptIds ?? []), ...(calls[i]?.sampledIds ?? [])];
          expect(one.tape).toMatchObject({ parentCallId: calls[i]?.callId, forkReason: null });
          expect(one.tape.reusedTokens).toBe(before.length);
          expect(one.promptIds.slice(0, before.length)).toEqual(before);
          expect(one.promptIds.length).toBeGreaterThan(before.length);
        });
        // Pi parses and prints arguments again; the tape says so and keeps the sampled ids.
        expect(calls[1]?.tape.rewritten).toHaveLength(1);
      }
    });

    it("gives a trajectory of one branch with coverage 1", () => {
      captured.forEach((calls, i) => {
        const attemptId = records[i]?.attempt.attemptId ?? asId<AttemptId>("");
        const { branches, fidelity } = buildTrajectory(attemptId, calls, { temperature: 1 });
        const sampledTokens = expectedIds.flat().length;
        expect(fidelity).toMatchObject({
          coverage: 1,
          calls: turns.length,
          branches: 1,
          fatal: [],
        });
        expect(fidelity).toMatchObject({
          sampledTokens,
          trainedTokens: sampledTokens,
          leftOut: [],
        });
        expect(fidelity.links).toMatchObject({ exact: turns.length - 1 });
        const last = calls.at(-1);
        expect(branches[0]?.segments.flatMap(({ ids }) => ids)).toEqual([
          ...(last?.promptIds ?? []),
          ...(last?.sampledIds ?? []),
        ]);
      });
    });

    it("shares its first prompt with every attempt at the task, on fixed paths", async () => {
      const [one, two] = captured.map((calls) => calls[0]);
      expect(one?.promptIds).toEqual(two?.promptIds);
      const renderer = await loadRendererFromFolder(tinyModelDir);
      const prompt = renderer.tokenizer.decode(one?.promptIds ?? []);
      expect(prompt).toContain("/workspace");
      expect(prompt).toContain(task.instruction);
      // Where the sandbox cannot show fixed paths, the gateway puts them in and says so.
      expect(one?.volatile.length === 0).toBe(level === "namespace");
      expect(prompt).not.toContain(tmpdir() === "/tmp" ? "/tmp/gimbal-" : tmpdir());
    });

    it("has its raw bodies stored, as they were on the wire", async () => {
      for (const one of captured.flat()) {
        const [request, response] = await Promise.all(
          [one.requestBlob, one.responseBlob].map(async (blob) => {
            if (blob === null) throw new Error(`Call ${one.callId} has no raw body.`);
            return new TextDecoder().decode(await store.getBlob(blob));
          }),
        );
        const body = JSON.parse(request ?? "") as OpenAI.ChatCompletionCreateParams;
        expect(body).toMatchObject({ model: "gimbal-tiny", stream: one.stream });
        expect(body.messages).toHaveLength(one.conversation.messages.length);
        expect(body.tools?.map((tool) => tool.type === "function" && tool.function.name)).toEqual([
          ...["read", "bash", "edit", "write"],
        ]);
        const chunks = parseChatChunks(response ?? "") as unknown as OpenAI.ChatCompletionChunk[];
        expect(chunks.at(-1)?.usage).toMatchObject({
          prompt_tokens: one.usage.promptTokens,
          completion_tokens: one.usage.completionTokens,
        });
        const pieces = chunks.map((chunk) => chunk.choices[0]?.delta);
        const text = pieces.map((delta) => delta?.content ?? "").join("");
        const argumentsText = pieces
          .flatMap((delta) => delta?.tool_calls ?? [])
          .map((piece) => piece.function?.arguments ?? "")
          .join("");
        expect(turns[one.index]).toContain(argumentsText);
        expect(turns[one.index]?.startsWith(text.trim())).toBe(true);
      }
    });

    it("stores equal records when the openai SDK sends Pi's own request, streamed and not", async () => {
      const blob = captured[0]?.[0]?.requestBlob;
      if (blob == null) throw new Error("The first call has no raw body.");
      const sent = JSON.parse(new TextDecoder().decode(await store.getBlob(blob)));
      const answers: unknown[] = [];
      const stored: CapturedCall[] = [];
      for (const stream of [false, true]) {
        const grant = gateway.createSession({ attemptId: asId<AttemptId>("sdk"), training: true });
        const client = new OpenAI({ baseURL: grant.baseUrls.openai, apiKey: grant.key });
        const { messages, model, tools } = sent as OpenAI.ChatCompletionCreateParams;
        const body = { messages, model, ...(tools === undefined ? {} : { tools }) };
        const answer = stream
          ? await client.chat.completions
              .stream({ ...body, stream_options: { include_usage: true } })
              .finalChatCompletion()
          : await client.chat.completions.create(body);
        const { finish_reason: finish, message } = answer.choices[0] ?? {};
        const { completion_tokens: sampled, prompt_tokens: given } = answer.usage ?? {};
        const tool = message?.tool_calls?.[0];
        answers.push({ finish, content: message?.content, sampled, given, id: tool?.id });
        await gateway.closeSession(grant.sessionId);
        stored.push(...gateway.calls(grant.sessionId));
      }
      expect(answers[1]).toEqual(answers[0]);
      expect(stored).toHaveLength(2);
      const [plain, streamed] = stored.map((one) => {
        const { callId: _, sessionId: __, stream: ___, requestBlob: ____, ...rest } = one;
        const { responseBlob: _____, startedAtMs: ______, ...same } = rest;
        return { ...same, firstTokenAtMs: null, endedAtMs: null };
      });
      expect(streamed).toEqual(plain);
      expect(plain?.promptIds).toEqual(captured[0]?.[0]?.promptIds);
    });
  });
}
