/**
 * Stage 3: warm-up on copy text, then one SFT run on the recorded demonstrations, with our own trainer.
 * Both parts are resumable; checkpoints lie in `.gimbal/tiny/{warm-up,sft}/checkpoints`.
 */
import { existsSync } from "node:fs";
import {
  createPolicy,
  createWasmBackend,
  type ModelConfig,
  type ModelPolicy,
} from "@gimbal-rl/compute";
import { createDeskTasks, deskWords, playDeskEpisode } from "@gimbal-rl/desk";
import { buildSftBatches } from "@gimbal-rl/graph";
import type { Tokenizer } from "@gimbal-rl/renderers";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { findCheckpoints, sftEvaluate, trainSft } from "@gimbal-rl/trainer";
import { readDemonstrations } from "./demonstration-file.js";
import { writeTurn } from "./expert-engine.js";
import { demonstrationsDir, modelDir, workDir } from "./paths.js";
import { createWarmUpTexts, type WarmUpVocabulary } from "./warm-up.js";

/** The architecture of `gimbal-tiny`. */
function tinyConfig(vocabularySize: number): ModelConfig {
  return {
    architecture: "qwen3",
    vocabularySize,
    width: 128,
    intermediateWidth: 384,
    layers: 4,
    heads: 4,
    keyValueHeads: 2,
    headWidth: 32,
    normEpsilon: 1e-6,
    ropeTheta: 10_000,
    maxPositions: 16_384,
    tiedEmbeddings: true,
  };
}

const seed = 1;
const optimizer = { beta1: 0.9, beta2: 0.98, weightDecay: 0.01, maxGradientNorm: 1 };
const warmUpSteps = 700;
const log = (text: string): void => void process.stderr.write(`${text}\n`);

/** Tokens that stand between names in transcripts, by how often they do in expert episodes. */
function commonMarks(tokenizer: Tokenizer, words: ReadonlySet<number>): number[] {
  const counts = new Map<number, number>();
  for (const task of createDeskTasks({ split: "demonstration", seed: 1, count: 200 })) {
    const { turns } = playDeskEpisode(task);
    const texts = turns.flatMap((turn) => [writeTurn(turn), ...turn.results]);
    for (const id of texts.flatMap((text) => tokenizer.encode(text))) {
      if (!words.has(id)) counts.set(id, (counts.get(id) ?? 0) + 1);
    }
  }
  return [...counts]
    .filter(([, count]) => count >= 5)
    .sort(([, a], [, b]) => b - a)
    .map(([id]) => id);
}

function warmUpVocabulary(tokenizer: Tokenizer): WarmUpVocabulary {
  const single = (text: string): number[] => {
    const ids = tokenizer.encode(text);
    return ids.length === 1 ? ids : [];
  };
  const words = deskWords.flatMap(single);
  const digits = "0123456789".split("").flatMap(single);
  return { words, digits, marks: commonMarks(tokenizer, new Set([...words, ...digits])) };
}

async function createTinyPolicy(
  threads: number,
): Promise<{ policy: ModelPolicy; tokenizer: Tokenizer }> {
  const { tokenizer } = await loadRendererFromFolder(modelDir);
  const backend = await createWasmBackend({ threads });
  const policy = createPolicy(tinyConfig(tokenizer.vocabularySize), backend, seed, {
    embeddingDeviation: 0.12,
  });
  return { policy, tokenizer };
}

/** Runs (or continues) the warm-up. */
export async function warmUp(threads: number): Promise<void> {
  const { policy, tokenizer } = await createTinyPolicy(threads);
  const texts = createWarmUpTexts(warmUpVocabulary(tokenizer), { count: 33_600, length: 80, seed });
  await trainSft(policy, texts, {
    seed,
    steps: warmUpSteps,
    examplesPerStep: 48,
    schedule: {
      kind: "linear",
      peak: 3e-3,
      warmupSteps: 100,
      totalSteps: warmUpSteps,
      finalFraction: 0.1,
    },
    optimizer,
    runDir: `${workDir}/warm-up`,
    modelDir,
    checkpointEvery: 50,
    retain: { last: 2 },
    onStep: ({ metrics, seconds, step }) => {
      if (step % 10 === 0)
        log(
          `warm-up ${step}/${warmUpSteps} loss ${metrics.loss?.toFixed(3)} ${seconds.toFixed(2)} s`,
        );
    },
  });
}

/** Runs (or continues) the SFT run from the end of the warm-up. */
export async function trainOnDemonstrations(threads: number, steps: number): Promise<void> {
  const { policy } = await createTinyPolicy(threads);
  const warm = (await findCheckpoints(`${workDir}/warm-up`)).at(-1);
  if (warm === undefined || warm.step < warmUpSteps) {
    throw new RangeError("The warm-up is not finished; run the stage warm-up first.");
  }
  if (!existsSync(`${workDir}/sft/checkpoints`)) await policy.load(warm.dir, { optimizer: false });
  const { demonstrations } = await readDemonstrations(`${demonstrationsDir}/tiny.jsonl.gz`);
  // Every 25th of the sorted set is kept out of training and only measures.
  const trajectories = demonstrations.map((one) => one.trajectory);
  const measured = buildSftBatches(trajectories.filter((_, i) => i % 25 === 0));
  const trained = trajectories.filter((_, i) => i % 25 !== 0);
  await trainSft(policy, trained, {
    seed,
    steps,
    examplesPerStep: 32,
    schedule: {
      kind: "cosine",
      peak: 2e-3,
      warmupSteps: 20,
      totalSteps: steps,
      finalFraction: 0.1,
    },
    optimizer,
    runDir: `${workDir}/sft`,
    modelDir,
    checkpointEvery: 10,
    evaluateEvery: 20,
    evaluate: async () => ({ heldLoss: await sftEvaluate(policy, measured) }),
    onStep: ({ extra, metrics, seconds, step }) => {
      if (step % 10 === 0) {
        log(
          `sft ${step}/${steps} loss ${metrics.loss?.toFixed(4)} held ${String(extra.heldLoss ?? "")} ${seconds.toFixed(2)} s`,
        );
      }
    },
  });
}
