/**
 * Stage 2: the scripted expert solves tasks through the real Pi and the real gateway; what the gateway captured becomes
 * the demonstration. Runs that the verifier does not pass are not kept.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import {
  asId,
  type CapturedCall,
  type Harness,
  type PolicyVersion,
  type Sandbox,
  type SandboxLevel,
  type SessionId,
  systemTimerClock,
} from "@gimbal-rl/core";
import { playDeskEpisode } from "@gimbal-rl/desk";
import { openAiChat } from "@gimbal-rl/dialects";
import { buildTrajectory } from "@gimbal-rl/graph";
import { createGateway } from "@gimbal-rl/proxy";
import { createTape, type Renderer } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { collectGroups, loadCalls, planGroup, type SessionHost } from "@gimbal-rl/rollout";
import { createMemoryStore } from "@gimbal-rl/store";
import { createVerifiers } from "@gimbal-rl/verifiers";
import {
  type Demonstration,
  type DemonstrationHeader,
  readDemonstrations,
  writeDemonstrations,
} from "./demonstration-file.js";
import { type DemonstrationSet, expertTasks } from "./demonstration-sets.js";
import { createExpertEngine, type ExpertTask } from "./expert-engine.js";
import { demonstrationsDir, modelDir } from "./paths.js";
import { createPi } from "./pi.js";

/** What to record, and how. */
export interface RecordOptions extends DemonstrationSet {
  readonly concurrency: number;
  readonly onProgress: (done: number, total: number) => void;
}

/** Every fourth run is at level `process`: there each run has other paths, so the policy learns to ignore them. */
const processEvery = 4;

/** Runs recorded between two writes of the fixture: what a kill can lose. */
const runsPerWrite = 120;

/** Records a set and writes its fixture, again and again while it grows; a second call goes on where the first stopped. */
export async function recordDemonstrations(
  options: RecordOptions,
): Promise<{ readonly kept: number }> {
  const { name, onProgress, seed, split } = options;
  const tasks = expertTasks(options);
  const path = `${demonstrationsDir}/${name}.jsonl.gz`;
  const renderer = await loadRendererFromFolder(modelDir);
  const kept = await recordedBefore(path, renderer.fingerprint, tasks);
  const known = new Set(kept.demonstrations.map(keyOf));
  let { harnessVersion, tools } = kept;
  let done = known.size;
  await mkdir(demonstrationsDir, { recursive: true });
  for (const level of ["namespace", "process"] as const) {
    const missing = tasks.filter(
      (one, i) => (i % processEvery === 0) === (level === "process") && !known.has(keyOfTask(one)),
    );
    if (missing.length === 0) continue;
    const pi = await createPi(level);
    harnessVersion = pi.harness.version;
    for (let first = 0; first < missing.length; first += runsPerWrite) {
      const own = missing.slice(first, first + runsPerWrite);
      const before = done;
      const recorded = await recordRuns(own, {
        ...{ ...pi, level, renderer, set: options },
        onAttempt: (count) => onProgress(before + count, tasks.length),
      });
      done += own.length;
      tools = recorded.tools ?? tools;
      kept.demonstrations.push(...recorded.demonstrations);
      const { template, tokenizer } = renderer.fingerprint;
      const header: DemonstrationHeader = {
        ...{ format: 1, harness: "pi", harnessVersion, tokenizer, template, split, seed, tools },
      };
      await writeDemonstrations(path, header, kept.demonstrations);
    }
  }
  return { kept: kept.demonstrations.length };
}

const keyOf = ({ habit, taskId }: Pick<Demonstration, "habit" | "taskId">): string =>
  `${habit} ${taskId}`;
const keyOfTask = ({ habit, task }: ExpertTask): string => keyOf({ habit, taskId: task.taskId });

/** Lets the expert solve tasks through the real Pi; gives what passed. */
async function recordRuns(
  own: readonly ExpertTask[],
  options: {
    readonly harness: Harness;
    readonly sandbox: Sandbox;
    readonly level: SandboxLevel;
    readonly renderer: Renderer;
    readonly set: RecordOptions;
    readonly onAttempt: (done: number) => void;
  },
): Promise<{
  readonly demonstrations: readonly Demonstration[];
  readonly tools: DemonstrationHeader["tools"] | null;
}> {
  const { harness, level, onAttempt, renderer, sandbox, set } = options;
  const store = createMemoryStore();
  const byId = new Map(own.map((one) => [one.task.taskId, one]));
  const taskOf = new Map<SessionId, ExpertTask>();
  const engine = createExpertEngine({
    tokenizer: renderer.tokenizer,
    endOfTurnId: renderer.stopIds[0] ?? 0,
    contextLength: 16_384,
    taskOf: (sessionId) => taskOf.get(sessionId),
  });
  await using gateway = await createGateway({
    engine,
    renderer,
    createTape,
    dialects: [openAiChat],
    store,
    volatileRules: [],
  });
  const sessions: SessionHost = {
    createSession: (spec) => {
      const grant = gateway.createSession(spec);
      const task = spec.taskId === undefined ? undefined : byId.get(spec.taskId);
      if (task !== undefined) taskOf.set(grant.sessionId, task);
      return grant;
    },
    closeSession: (sessionId) => gateway.closeSession(sessionId),
  };
  const plans = own.map(({ task }) =>
    planGroup({
      label: set.name,
      task,
      size: 1,
      runSeed: set.seed,
      policyVersion: asId<PolicyVersion>("expert"),
    }),
  );
  const collected = await collectGroups(
    plans,
    {
      dependencies: {
        ...{
          sessions,
          harness,
          sandbox,
          verifiers: createVerifiers({ nodePath: process.execPath }),
          clock: systemTimerClock,
        },
        ...{ model: "gimbal-tiny", contextTokens: 16_384, maxOutputTokens: 512 },
        ...{ maxOutputBytes: 4_000_000, wallClockMs: 120_000, temperature: 1 },
      },
      store,
      concurrency: set.concurrency,
      training: true,
      onAttempt: (_, done) => onAttempt(done),
    },
    new AbortController().signal,
  );
  const records = collected.flatMap((group) => group.records);
  const calls = await loadCalls(store, new Set(records.map((record) => record.sessionId)));
  const demonstrations: Demonstration[] = [];
  let tools: DemonstrationHeader["tools"] | null = null;
  for (const { plan, records: ran } of collected) {
    for (const record of ran) {
      const captured = calls.get(record.sessionId) ?? [];
      const last = captured.at(-1);
      const expertTask = byId.get(plan.task.taskId);
      if (expertTask === undefined) throw new RangeError(`${plan.task.taskId} was not planned.`);
      if (record.verdict.score !== 1 || last === undefined || last.message === null) {
        process.stderr.write(
          `not kept: ${plan.task.taskId} ${record.failureClass} ${JSON.stringify(record.verdict.evidence)} ${record.outcome.errorText ?? ""}\n`,
        );
        continue;
      }
      tools = last.conversation.tools;
      demonstrations.push(toDemonstration(expertTask, level, captured, last));
    }
  }
  return { demonstrations, tools };
}

/** Runs of the wanted set that an earlier call recorded with the same tokenizer and template. */
async function recordedBefore(
  path: string,
  fingerprint: { readonly template: string; readonly tokenizer: string },
  tasks: readonly ExpertTask[],
): Promise<
  Pick<DemonstrationHeader, "harnessVersion" | "tools"> & { demonstrations: Demonstration[] }
> {
  const nothing = { demonstrations: [], harnessVersion: "", tools: [] };
  if (!existsSync(path)) return nothing;
  const { demonstrations, header } = await readDemonstrations(path);
  const isSame =
    header.tokenizer === fingerprint.tokenizer && header.template === fingerprint.template;
  if (!isSame) return nothing;
  const wanted = new Map(tasks.map((one) => [keyOfTask(one), one]));
  const isCurrent = (recorded: Demonstration): boolean => {
    const own = wanted.get(keyOf(recorded));
    return own !== undefined && playsLike(recorded, own);
  };
  return { ...header, demonstrations: demonstrations.filter(isCurrent) };
}

/** Whether the expert of today makes the calls that were recorded: after a change of its ways a run is stale. */
function playsLike({ messages }: Demonstration, { habit, task }: ExpertTask): boolean {
  const recorded = messages.flatMap((message) =>
    message.parts.flatMap((part) => (part.type === "tool-call" ? [part.argumentsText] : [])),
  );
  const played = playDeskEpisode(task, habit).turns.flatMap((turn) =>
    turn.toolCalls.map((call) => call.argumentsText),
  );
  // A harness sends earlier calls back with spaces of its own.
  const normal = (texts: readonly string[]): string =>
    JSON.stringify(texts.map((text) => JSON.parse(text) as unknown));
  return normal(recorded) === normal(played);
}

function toDemonstration(
  { habit, task }: ExpertTask,
  sandboxLevel: SandboxLevel,
  calls: readonly CapturedCall[],
  last: CapturedCall,
): Demonstration {
  const attemptId = last.attemptId;
  if (attemptId === null || last.message === null) throw new RangeError("A call without attempt.");
  return {
    taskId: task.taskId,
    family: task.family,
    habit,
    sandboxLevel,
    messages: [...last.conversation.messages, last.message],
    trajectory: buildTrajectory(attemptId, calls),
  };
}
