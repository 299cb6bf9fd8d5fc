/**
 * Stage 2: the scripted expert solves tasks through the real Pi and the real gateway; what the gateway captured becomes
 * the demonstration. Runs that the verifier does not pass are not kept.
 */
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import {
  asId,
  type CapturedCall,
  type PolicyVersion,
  type SandboxLevel,
  type SessionId,
  systemClock,
} from "@gimbal-rl/core";
import {
  createDeskTasks,
  type DeskSplit,
  deskFamilies,
  playDeskEpisode,
  simulateDeskGrading,
} from "@gimbal-rl/desk";
import { openAiChat } from "@gimbal-rl/dialects";
import { buildTrajectory } from "@gimbal-rl/graph";
import { createGateway } from "@gimbal-rl/proxy";
import { createTape } from "@gimbal-rl/renderers";
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
import { createExpertEngine, type ExpertTask } from "./expert-engine.js";
import { demonstrationsDir, modelDir } from "./paths.js";
import { createPi } from "./pi.js";

/** One set to record. */
export interface RecordOptions {
  readonly name: string;
  readonly split: DeskSplit;
  readonly seed: number;
  /** Tasks that the careful expert solves. */
  readonly careful: number;
  /** Tasks that the hasty expert solves, spread over the families. */
  readonly hasty: number;
  readonly concurrency: number;
  readonly onProgress: (done: number, total: number) => void;
}

/** Every fourth run is at level `process`: there each run has other paths, so the policy learns to ignore them. */
const processEvery = 4;

/** Records a set and writes its fixture. */
export async function recordDemonstrations(
  options: RecordOptions,
): Promise<{ readonly kept: number }> {
  const { concurrency, name, seed, split } = options;
  const tasks = expertTasks(options);
  const path = `${demonstrationsDir}/${name}.jsonl.gz`;
  let tools: DemonstrationHeader["tools"] = [];
  let harnessVersion = "";
  const renderer = await loadRendererFromFolder(modelDir);
  // Runs recorded before with the same tokenizer and template are kept; only missing tasks are run.
  const kept = await recordedBefore(path, renderer.fingerprint);
  const known = new Set(kept.map((one) => one.taskId));
  const missing = (level: SandboxLevel): ExpertTask[] =>
    tasks.filter(
      ({ task }, i) =>
        (i % processEvery === 0) === (level === "process") && !known.has(task.taskId),
    );
  const parts = (["namespace", "process"] as const).map(
    (level) => [level, missing(level)] as const,
  );
  if (parts.every(([, own]) => own.length === 0)) return { kept: known.size };
  let before = known.size;
  for (const [level, own] of parts) {
    if (own.length === 0) continue;
    const { harness, sandbox } = await createPi(level);
    harnessVersion = harness.version;
    const store = createMemoryStore();
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
    const byId = new Map(own.map((one) => [one.task.taskId, one]));
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
        label: name,
        task,
        size: 1,
        runSeed: seed,
        policyVersion: asId<PolicyVersion>("expert"),
      }),
    );
    const collected = await collectGroups(
      plans,
      {
        dependencies: {
          sessions,
          harness,
          sandbox,
          verifiers: createVerifiers(),
          clock: systemClock,
          model: "gimbal-tiny",
          contextTokens: 16_384,
          maxOutputTokens: 512,
          maxOutputBytes: 4_000_000,
          wallClockMs: 120_000,
          temperature: 1,
        },
        store,
        concurrency,
        training: true,
        onAttempt: (_, done) => options.onProgress(before + done, tasks.length),
      },
      new AbortController().signal,
    );
    before += own.length;
    const records = collected.flatMap((group) => group.records);
    const calls = await loadCalls(store, new Set(records.map((record) => record.sessionId)));
    for (const { plan, records: ran } of collected) {
      for (const record of ran) {
        const own = calls.get(record.sessionId) ?? [];
        const last = own.at(-1);
        const expertTask = byId.get(plan.task.taskId);
        if (expertTask === undefined) throw new RangeError(`${plan.task.taskId} was not planned.`);
        if (record.verdict.score !== 1 || last === undefined || last.message === null) {
          process.stderr.write(
            `not kept: ${plan.task.taskId} ${record.failureClass} ${JSON.stringify(record.verdict.evidence)} ${record.outcome.errorText ?? ""}\n`,
          );
          continue;
        }
        tools = last.conversation.tools;
        kept.push(toDemonstration(expertTask, level, own, last));
      }
    }
  }
  await mkdir(demonstrationsDir, { recursive: true });
  const { template, tokenizer } = renderer.fingerprint;
  const header: DemonstrationHeader = {
    ...{ format: 1, harness: "pi", harnessVersion, tokenizer, template, split, seed, tools },
  };
  const wanted = new Set<string>(tasks.map(({ task }) => task.taskId));
  const inSet = kept.filter((one) => wanted.has(one.taskId));
  await writeDemonstrations(path, header, inSet);
  return { kept: inSet.length };
}

async function recordedBefore(
  path: string,
  fingerprint: { readonly template: string; readonly tokenizer: string },
): Promise<Demonstration[]> {
  if (!existsSync(path)) return [];
  const { demonstrations, header } = await readDemonstrations(path);
  const isSame =
    header.tokenizer === fingerprint.tokenizer && header.template === fingerprint.template;
  return isSame ? demonstrations : [];
}

/** The tasks of a set in order, each once. */
function expertTasks({ careful, hasty, seed, split }: RecordOptions): ExpertTask[] {
  const tasks: ExpertTask[] = createDeskTasks({ split, seed, count: careful }).map((task) => ({
    task,
    habit: "careful",
  }));
  const known = new Set(tasks.map(({ task }) => task.taskId));
  const families = deskFamilies.filter((one) => one.trained && one.nextHasty !== undefined);
  const perFamily = hasty === 0 ? 0 : Math.ceil(hasty / families.length);
  for (const { name } of families) {
    // Short cuts work out in about a quarter of the tasks. Those that the simulator sees fail would not be kept, so
    // they are not run; the real verifier still decides about the others.
    const solved = createDeskTasks({
      ...{ split, seed: seed + 1, count: perFamily * 8, families: [name] },
    }).filter(
      (task) =>
        !known.has(task.taskId) && simulateDeskGrading(task, playDeskEpisode(task, "hasty").files),
    );
    if (solved.length < perFamily) {
      throw new RangeError(`Only ${solved.length} tasks of ${name} allow a short cut; draw more.`);
    }
    tasks.push(...solved.slice(0, perFamily).map((task) => ({ task, habit: "hasty" }) as const));
  }
  return tasks;
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
