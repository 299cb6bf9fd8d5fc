/**
 * Tuning aid: GRPO on the desk suite against the tool simulator instead of Pi, minutes of attempts in seconds.
 * Nothing it prints is a result of Gimbal; claims come from runs through the real harness only.
 *
 *   npx tsx -C @gimbal-rl/source src/simulate.ts <model folder> '{"steps":12,"groups":8,"size":8,"lr":3e-4}'
 */
import { createWasmBackend, type LearningRateScales, loadPolicy } from "@gimbal-rl/compute";
import {
  type AttemptId,
  asId,
  type CallId,
  type GroupId,
  hashToSeed,
  type Message,
  type PolicyVersion,
  type Segment,
  type SessionId,
  type Task,
  type ToolDefinition,
  type Trajectory,
  type TrajectoryGroup,
} from "@gimbal-rl/core";
import { createDeskTasks, simulateDeskGrading, simulateDeskTool } from "@gimbal-rl/desk";
import { createLocalEngine, type LocalEngine } from "@gimbal-rl/engine";
import { buildTrainingBatches } from "@gimbal-rl/graph";
import { groupAdvantages, grpo } from "@gimbal-rl/objective";
import type { Renderer } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { type LearningRateSchedule, learningRateAt, trainStep } from "@gimbal-rl/trainer";
import { readDemonstrations } from "./demonstration-file.js";
import { demonstrationsDir, workDir } from "./paths.js";

interface Settings {
  readonly steps: number;
  readonly groups: number;
  readonly size: number;
  readonly lr: number;
  /** Share of `lr` that is left in the last step; falls linearly. */
  readonly finalFraction: number;
  readonly epsilon: number;
  readonly beta2: number;
  readonly epochs: number;
  readonly minibatches: number;
  readonly heldout: number;
  readonly seed: number;
  readonly temperature: number;
  /** Multiplies negative advantages. */
  readonly negative: number;
  readonly kl: number;
  /** Tries the first tasks again in every step: shows whether the update works at all. */
  readonly repeat: boolean;
  readonly scales: LearningRateScales;
  readonly weightDecay: number;
}

interface Played {
  readonly trajectory: Trajectory;
  readonly score: number;
  readonly calls: number;
  readonly malformed: number;
}

const [folder = "", json = "{}"] = process.argv.slice(2);
const settings: Settings = {
  ...{ steps: 12, groups: 8, size: 8, lr: 3e-4, epsilon: 1e-8, beta2: 0.999, epochs: 1 },
  ...{
    minibatches: 1,
    heldout: 140,
    seed: 1,
    temperature: 1,
    negative: 1,
    kl: 0,
    weightDecay: 0,
    repeat: false,
    finalFraction: 1,
    scales: {},
  },
  ...(JSON.parse(json) as Partial<Settings>),
};
const schedule: LearningRateSchedule = {
  kind: "linear",
  peak: settings.lr,
  totalSteps: settings.steps,
  finalFraction: settings.finalFraction,
};
const renderer: Renderer = await loadRendererFromFolder(folder);
const { demonstrations, header } = await readDemonstrations(`${demonstrationsDir}/tiny.jsonl.gz`);
const tools: readonly ToolDefinition[] = header.tools;
const system = demonstrations.find((one) => one.sandboxLevel === "namespace")
  ?.messages[0] as Message;
const engine: LocalEngine = await createLocalEngine({ modelDir: folder, threads: 1 });

async function play(task: Task, label: string): Promise<Played> {
  const attemptId = asId<AttemptId>(`${label}/${task.taskId}`);
  const user: Message = { role: "user", parts: [{ type: "text", text: task.instruction }] };
  const messages: Message[] = [system, user];
  const segments: Segment[] = [];
  let ids: number[] = [...renderer.render({ messages, tools }).ids];
  let fresh = ids;
  let files: Readonly<Record<string, string>> = task.files;
  let malformed = 0;
  let calls = 0;
  let minted = 0;
  while (calls < 10) {
    const callId = asId<CallId>(`${attemptId}/${calls}`);
    calls += 1;
    const sampled: number[] = [];
    const logprobs: number[] = [];
    const policyRuns: Segment["policyRuns"] = [];
    const request = {
      promptIds: ids,
      maxTokens: 200,
      sampling: { temperature: settings.temperature, topP: 1, topK: 0 },
      stopIds: renderer.stopIds,
      seed: hashToSeed("simulate", settings.seed, attemptId, ids),
      sessionId: asId<SessionId>(attemptId),
    };
    for await (const event of engine.generate(request, new AbortController().signal)) {
      if (event.type !== "tokens-delta") continue;
      sampled.push(...event.ids);
      logprobs.push(...event.logprobs);
    }
    segments.push(
      { kind: "given", ids: fresh, logprobs: [], callId, trained: false, policyRuns: [] },
      { kind: "sampled", ids: sampled, logprobs, callId, trained: true, policyRuns },
    );
    const parser = renderer.createOutputParser({
      conversation: { messages, tools },
      mintToolCallId: () => {
        minted += 1;
        return `call_${minted}`;
      },
    });
    parser.push(sampled);
    const { turn } = parser.end("stop");
    if (turn.malformed) malformed += 1;
    messages.push(turn.message);
    const results: Message[] = [];
    for (const part of turn.message.parts) {
      if (part.type !== "tool-call") continue;
      const result = simulateDeskTool(files, part);
      files = result.files;
      results.push({
        role: "tool",
        toolCallId: part.toolCallId,
        parts: [{ type: "text", text: result.text }],
      });
    }
    if (results.length === 0) break;
    messages.push(...results);
    const delta = renderer.renderDelta([...ids, ...sampled], results);
    ids = [...ids, ...sampled, ...delta];
    fresh = [...delta];
  }
  const count = segments.reduce(
    (sum, one) => sum + (one.kind === "sampled" ? one.ids.length : 0),
    0,
  );
  const trajectory: Trajectory = {
    attemptId,
    branches: [{ segments, callIds: [] }],
    fidelity: {
      ...{ sampledTokens: count, trainedTokens: count, coverage: 1, leftOut: [], calls },
      ...{ branches: 1, links: {}, malformedCalls: malformed, fatal: [] },
    },
  };
  const score = simulateDeskGrading(task, files) && calls < 10 ? 1 : 0;
  return { trajectory, score, calls, malformed };
}

async function evaluate(label: string): Promise<string> {
  const tasks = createDeskTasks({ split: "heldout", seed: settings.seed, count: settings.heldout });
  const played = await Promise.all(tasks.map((task) => play(task, label)));
  const calls = played.reduce((sum, one) => sum + one.calls, 0);
  const malformed = played.reduce((sum, one) => sum + one.malformed, 0);
  const passed = played.reduce((sum, one) => sum + one.score, 0);
  const byFamily = new Map<string, number[]>();
  tasks.forEach((task, i) => {
    byFamily.set(task.family, [...(byFamily.get(task.family) ?? []), played[i]?.score ?? 0]);
  });
  const families = [...byFamily].map(
    ([name, scores]) =>
      `${name.slice(0, 6)} ${(scores.reduce((a, b) => a + b, 0) / scores.length).toFixed(2)}`,
  );
  return `pass@1 ${(passed / tasks.length).toFixed(3)} parsed ${(1 - malformed / calls).toFixed(3)} | ${families.join(" ")}`;
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);
print(`before ${await evaluate("before")}`);
if (settings.steps > 0) {
  const backend = await createWasmBackend({ threads: 1 });
  const policy = await loadPolicy(folder, backend);
  const reference = await loadPolicy(folder, backend);
  const count = settings.steps * settings.groups;
  const pool = createDeskTasks({ split: "train", seed: settings.seed, count });
  for (let step = 1; step <= settings.steps; step += 1) {
    const first = settings.repeat ? 0 : (step - 1) * settings.groups;
    const tasks = pool.slice(first, first + settings.groups);
    const groups: TrajectoryGroup[] = await Promise.all(
      tasks.map(async (task) => ({
        groupId: asId<GroupId>(task.taskId),
        taskId: task.taskId,
        members: await Promise.all(
          Array.from({ length: settings.size }, async (_, i) => {
            const { score, trajectory } = await play(task, `step-${step}-${i}`);
            return {
              trajectory,
              verdict: { verifier: "", score, failureClass: "none" as const, evidence: [] },
            };
          }),
        ),
      })),
    );
    const weighted = groups.map((group) => ({
      group,
      advantages: groupAdvantages(group.members.map((member) => member.verdict.score)).map(
        (value) => (value !== null && value < 0 ? value * settings.negative : value),
      ),
    }));
    const batches = buildTrainingBatches(weighted, {
      temperature: settings.temperature,
      maxRows: 16_384,
    });
    const metrics = await trainStep(policy, batches, {
      learningRate: learningRateAt(schedule, step),
      learningRateScales: settings.scales,
      epsilon: settings.epsilon,
      beta2: settings.beta2,
      maxGradientNorm: 1,
      epochs: settings.epochs,
      minibatches: settings.minibatches,
      weightDecay: settings.weightDecay,
      objective: { ...grpo.policy, klCoefficient: settings.kl },
      reference,
    });
    const scores = groups.flatMap((group) =>
      group.members.map((member) => member.verdict.score ?? 0),
    );
    const reward = scores.reduce((a, b) => a + b, 0) / scores.length;
    print(
      `step ${step} reward ${reward.toFixed(3)} gradient ${metrics.gradientNorm.toFixed(3)} entropy ${metrics.entropy.toFixed(3)} kl ${metrics.approxKlK3.toFixed(4)}`,
    );
    const dir = `${workDir}/simulated-${process.pid}`;
    await policy.save(dir, { optimizer: false });
    await engine.loadWeights(dir, asId<PolicyVersion>(`step-${step}`));
  }
  print(`after  ${await evaluate("after")}`);
  await policy[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
}
await engine[Symbol.asyncDispose]();
