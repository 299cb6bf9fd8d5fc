/** A real, tiny, random model folder; a real run made with it; and the program run in this process. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createPolicy, createReferenceBackend } from "@gimbal-rl/compute";
import { asId, type Task, type TaskId } from "@gimbal-rl/core";
import { defineHarness } from "@gimbal-rl/harness";
import { loadRenderer } from "@gimbal-rl/renderers";
import { defaultRunConfig } from "@gimbal-rl/run";
import { createSandbox } from "@gimbal-rl/sandbox";
import { continueGrpoRun, createRunFolder } from "@gimbal-rl/sdk";
import { createTestModelTexts } from "@gimbal-rl/testkit";
import { createContext, runCli } from "../src/index.js";

/** What one invocation said and returned. */
export interface Invocation {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the program in this process. */
export async function gimbal(...argv: readonly string[]): Promise<Invocation> {
  return start(...argv).ended;
}

/** A running invocation. */
export interface Running {
  readonly ended: Promise<Invocation>;
  /** Text of stdout so far. */
  stdout(): string;
  /** What Ctrl-C does. */
  stop(): void;
}

/** Starts the program in this process. */
export function start(...argv: readonly string[]): Running {
  let stdout = "";
  let stderr = "";
  const controller = new AbortController();
  const context = createContext({
    version: "0.0.0-test",
    stdout: {
      write: (text) => {
        stdout += text;
      },
    },
    stderr: {
      write: (text) => {
        stderr += text;
      },
    },
    signal: controller.signal,
  });
  const ended = runCli(argv, context, {
    signalExitCode: () => (controller.signal.aborted ? 130 : null),
  }).then((exitCode) => ({ exitCode, stdout, stderr }));
  return { ended, stdout: () => stdout, stop: () => controller.abort() };
}

/** Writes a complete model folder with random weights. */
export async function createModelFolder(dir: string): Promise<string> {
  const texts = createTestModelTexts();
  const renderer = loadRenderer(texts);
  await mkdir(dir, { recursive: true });
  await using policy = createPolicy(
    {
      architecture: "qwen3",
      vocabularySize: renderer.tokenizer.vocabularySize,
      width: 16,
      intermediateWidth: 24,
      layers: 1,
      heads: 2,
      keyValueHeads: 1,
      headWidth: 8,
      normEpsilon: 1e-6,
      ropeTheta: 10_000,
      maxPositions: 2048,
      tiedEmbeddings: true,
    },
    createReferenceBackend(),
    1,
  );
  await policy.save(dir, { optimizer: false });
  await writeFile(join(dir, "tokenizer.json"), texts.tokenizerJson);
  await writeFile(join(dir, "tokenizer_config.json"), texts.tokenizerConfigJson);
  return dir;
}

/** Asks twice, the second time with the first answer in the history. */
const agent = `
const messages = [{ role: "user", content: process.env.GIMBAL_INSTRUCTION }];
for (let turn = 0; turn < 2; turn += 1) {
  const answer = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
    body: JSON.stringify({ model: "m", messages }),
  });
  const { choices } = await answer.json();
  messages.push(choices[0].message, { role: "user", content: "And now?" });
}
console.log("done");
`;

function createTask(name: string, split: Task["split"]): Task {
  return {
    taskId: asId<TaskId>(name),
    suite: "test",
    family: "echo",
    split,
    instruction: "Say something.",
    files: { "a.txt": "a\n" },
    protectedPaths: [],
    gradingFiles: {},
    verifier: { kind: "file-state-equals", options: { files: { "a.txt": "a\n" } } },
    budgets: { maxTokensPerCall: 6, wallClockMs: 60_000 },
  };
}

/** A finished run of one step with two attempts, and one held-out attempt before and after. */
export async function createRun(runDir: string, modelDir: string): Promise<void> {
  const harness = defineHarness({
    id: "two-turns",
    command: () => ({ argv: [process.execPath, "--input-type=module", "-e", agent] }),
  });
  const config = {
    ...defaultRunConfig,
    seed: 3,
    steps: 1,
    groupsPerStep: 1,
    groupSize: 2,
    concurrency: 2,
    evaluation: { heldoutTasks: 1, heldoutFamilyTasks: 0 },
    facts: { suite: "test" },
  };
  const { id, version } = harness;
  await createRunFolder(
    runDir,
    {
      format: 1,
      config,
      harness: { id, version },
      sandboxLevel: "process",
      model: "m",
      threads: 1,
    },
    {
      train: [createTask("train-1", "train")],
      heldout: [createTask("heldout-1", "heldout")],
      heldoutFamily: [],
    },
  );
  const sandbox = createSandbox({ level: "process" });
  await continueGrpoRun({ runDir, harness, sandbox, modelDir }, AbortSignal.timeout(60_000));
}
