/**
 * One group at level `namespace` whose first attempt misbehaves and whose others are honest, through the whole rollout:
 * gateway with a scripted engine, run database, sandbox, verifier.
 */
import {
  asId,
  type CapturedCall,
  type PolicyVersion,
  systemTimerClock,
  type Task,
  type TaskId,
} from "@gimbal-rl/core";
import { openAiChat } from "@gimbal-rl/dialects";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { defineHarness } from "@gimbal-rl/harness";
import { createGateway, type Gateway, type SessionInfo } from "@gimbal-rl/proxy";
import { createTape, type Renderer } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { type AttemptRecord, collectGroups, loadCalls, planGroup } from "@gimbal-rl/rollout";
import { createSandbox } from "@gimbal-rl/sandbox";
import { openStore } from "@gimbal-rl/store";
import { createScriptedEngine, type EngineScript } from "@gimbal-rl/testkit";
import { createVerifiers } from "@gimbal-rl/verifiers";

let renderer: Promise<Renderer> | null = null;

/** What an attack may know beforehand: more than a real agent could. */
export interface AttackFacts {
  readonly controlUrl: string;
  /** A session that is open and belongs to nobody in the group. */
  readonly otherSessionId: string;
  readonly closedKey: string;
  readonly runDir: string;
}

/** A hostile agent and what it is up against. */
export interface HostileGroupOptions {
  readonly runDir: string;
  /** JavaScript; sees `ask`, `found`, `fs`, `cp`, `env`. What it puts into `found` is its outcome. */
  readonly attack: (facts: AttackFacts) => string;
  /** What the honest attempts do after their call, before they write the answer. */
  readonly honest?: string;
  readonly task?: Partial<Task>;
  /** Answers of the model. Default: "ok" to everything. */
  readonly script?: (renderer: Renderer) => EngineScript;
  readonly onAttempt?: (record: AttemptRecord) => void;
}

/** How it went. */
export interface HostileGroupResult {
  readonly hostile: AttemptRecord;
  readonly honest: readonly AttemptRecord[];
  /** What the attack put into `found`. */
  readonly found: Readonly<Record<string, unknown>>;
  readonly other: SessionInfo;
  /** Stored calls by session. */
  readonly calls: ReadonlyMap<string, readonly CapturedCall[]>;
  readonly hostileSession: SessionInfo;
}

const prelude = `
import fs from "node:fs"; import cp from "node:child_process"; const env = process.env;
const found = {};
const ask = (text, headers = {}, url = env.OPENAI_BASE_URL) => fetch(url + "/chat/completions", {
  method: "POST",
  headers: { authorization: "Bearer " + env.OPENAI_API_KEY, "content-type": "application/json", ...headers },
  body: JSON.stringify({ model: "m", messages: [{ role: "user", content: text }] }),
}).then(async (answer) => ({ status: answer.status, text: await answer.text() }));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
`;
const node = "/opt/node/bin/node";

/** The task of every group: an answer that the honest attempts give. */
export const hostileTask: Task = {
  taskId: asId<TaskId>("hostile/answer"),
  suite: "hostile",
  family: "hostile",
  split: "train",
  instruction: "Write yes into answer.txt.",
  files: { "question.txt": "Is it?\n", "check.test.js": "original check\n" },
  protectedPaths: ["check.test.js", ".git/"],
  gradingFiles: { "hidden.test.js": "hidden-test-secret" },
  verifier: { kind: "file-state-equals", options: { files: { "answer.txt": "yes" } } },
  budgets: { maxCalls: 5, wallClockMs: 60_000 },
};

/** Runs one hostile and two honest attempts, two at a time. */
export async function runHostileGroup(options: HostileGroupOptions): Promise<HostileGroupResult> {
  renderer ??= loadRendererFromFolder(tinyModelDir);
  const loaded = await renderer;
  const store = await openStore(options.runDir);
  const engine = createScriptedEngine({
    encode: (text, encodeOptions) => loaded.tokenizer.encode(text, encodeOptions),
    script: options.script?.(loaded) ?? (() => ({ text: "ok" })),
    info: { vocabularySize: loaded.tokenizer.vocabularySize },
  });
  try {
    await using gateway = await createGateway({
      ...{ engine, renderer: loaded, createTape, store, dialects: [openAiChat] },
    });
    const other = gateway.createSession();
    const closed = gateway.createSession();
    await gateway.closeSession(closed.sessionId);
    const facts: AttackFacts = {
      controlUrl: gateway.controlUrl,
      otherSessionId: other.sessionId,
      closedKey: closed.key,
      runDir: options.runDir,
    };
    const records = await collect(options, facts, gateway, store);
    const [hostile, ...honest] = records;
    if (hostile === undefined) throw new Error("No record of the hostile attempt.");
    const text = hostile.outcome.finalText ?? "";
    return {
      hostile,
      honest,
      found: text.startsWith("{") ? (JSON.parse(text) as Record<string, unknown>) : {},
      other: gateway.session(other.sessionId),
      hostileSession: gateway.session(hostile.sessionId),
      calls: await loadCalls(store, new Set(records.map(({ sessionId }) => sessionId))),
    };
  } finally {
    await store.close();
  }
}

async function collect(
  options: HostileGroupOptions,
  facts: AttackFacts,
  gateway: Gateway,
  store: Awaited<ReturnType<typeof openStore>>,
): Promise<readonly AttemptRecord[]> {
  const attack = `${prelude}${options.attack(facts)}\nconsole.log(JSON.stringify(found));`;
  const honest = `${prelude}await ask("honest");${options.honest ?? ""};fs.writeFileSync("answer.txt", "yes");`;
  const hostileKeys = new Set<string>();
  const harness = defineHarness({
    id: "hostile-first",
    command: ({ key }) => {
      const code = hostileKeys.has(key) ? attack : honest;
      return {
        argv: [node, "--input-type=module", "-e", code],
        readOnlyMounts: [{ hostPath: process.execPath, insidePath: node }],
      };
    },
  });
  const task = { ...hostileTask, ...options.task };
  const policyVersion = asId<PolicyVersion>("step-0");
  const plan = planGroup({ label: "hostile", task, size: 3, runSeed: 1, policyVersion });
  const [group] = await collectGroups(
    [plan],
    {
      dependencies: {
        sessions: {
          createSession: (spec) => {
            const grant = gateway.createSession(spec);
            if (spec.attemptId === plan.attempts[0]?.attemptId) hostileKeys.add(grant.key);
            return grant;
          },
          closeSession: (sessionId) => gateway.closeSession(sessionId),
        },
        harness,
        sandbox: createSandbox({ level: "namespace" }),
        verifiers: createVerifiers({ nodePath: process.execPath }),
        clock: systemTimerClock,
        model: "m",
        contextTokens: 8192,
        maxOutputTokens: 512,
        maxOutputBytes: 8 * 1024 * 1024,
        wallClockMs: 60_000,
        temperature: 1,
      },
      store,
      concurrency: 2,
      training: true,
      ...(options.onAttempt === undefined ? {} : { onAttempt: options.onAttempt }),
    },
    new AbortController().signal,
  );
  return group?.records ?? [];
}
