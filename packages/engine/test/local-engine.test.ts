/**
 * The local engine with a real model: on each backend, in this thread and in its worker.
 */
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  createReferenceBackend,
  createWasmBackend,
  loadPolicy,
  type TrainablePolicy,
} from "@gimbal-rl/compute";
import {
  asId,
  createRandom,
  type Engine,
  type GenerateRequest,
  GimbalError,
  hashToSeed,
  type PolicyVersion,
} from "@gimbal-rl/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createLocalEngine,
  type LocalBackendId,
  type LocalEngine,
  type LocalEngineOptions,
} from "../src/index.js";
import { createWorkerChannel } from "../src/local/host-channel.js";
import { connectLocalEngine } from "../src/local/local-engine.js";
import { createModelFolder, demoSize, type ModelFolder, smallConfig } from "./model-folder.js";

const never = new AbortController().signal;
let first: ModelFolder;
let second: ModelFolder;

beforeAll(async () => {
  first = await createModelFolder(1);
  second = await createModelFolder(2);
});

afterAll(async () => {
  await first.remove();
  await second.remove();
});

interface Sampled {
  ids: number[];
  logprobs: number[];
  reason: string;
  versions: string[];
}

async function collect(engine: Engine, request: GenerateRequest): Promise<Sampled> {
  const sampled: Sampled = { ids: [], logprobs: [], reason: "", versions: [] };
  for await (const event of engine.generate(request, never)) {
    if (event.type === "tokens-delta") {
      sampled.ids.push(...event.ids);
      sampled.logprobs.push(...event.logprobs);
      if (!sampled.versions.includes(event.policyVersion))
        sampled.versions.push(event.policyVersion);
    } else sampled.reason = event.reason;
  }
  return sampled;
}

async function errorOf(promise: Promise<unknown>): Promise<GimbalError> {
  try {
    await promise;
  } catch (error) {
    if (GimbalError.is(error)) return error;
    throw error;
  }
  throw new Error("expected a failure");
}

/** Prompts with a shared prefix, as the attempts of a group have. */
function requestsOf(count: number): GenerateRequest[] {
  const random = createRandom(11);
  const shared = Array.from({ length: 40 }, () => random.integer(smallConfig.vocabularySize));
  return Array.from({ length: count }, (_, i) => ({
    promptIds: [...shared, ...Array.from({ length: i % 5 }, () => random.integer(61))],
    maxTokens: 6 + (i % 7),
    sampling: { temperature: i % 4 === 3 ? 0.7 : 1, topP: 1, topK: 0 },
    stopIds: [60],
    seed: hashToSeed(i),
  }));
}

/** What the trainer's forward pass gives for the sampled ids of one call. */
async function trainerLogprobs(
  policy: TrainablePolicy,
  promptIds: readonly number[],
  sampledIds: readonly number[],
  temperature: number,
): Promise<number[]> {
  const ids = [...promptIds, ...sampledIds];
  const pass = await policy.forward(
    {
      tokenIds: Int32Array.from(ids),
      positions: Int32Array.from(ids.keys()),
      parentRows: Int32Array.from(ids, (_, row) => row - 1),
      segmentStarts: Int32Array.of(0),
      segmentParents: Int32Array.of(-1),
    },
    {
      rows: Int32Array.from(sampledIds, (_, i) => promptIds.length + i - 1),
      targetIds: Int32Array.from(sampledIds),
    },
    { temperature, keepForBackward: false },
  );
  const logprobs = [...pass.logprobs];
  pass.free();
  return logprobs;
}

const backends: LocalBackendId[] = ["reference", "wasm"];

describe.each(backends)("on the %s backend", (backend) => {
  const open = (over: Partial<LocalEngineOptions> = {}): Promise<LocalEngine> =>
    createLocalEngine({ modelDir: first.dir, backend, slots: 512, inProcess: true, ...over });

  test("results are the same bits alone and in a crowd, cold and warm, in big and small chunks", async () => {
    const requests = requestsOf(10);
    const crowd = await open({ prefillRows: 256 });
    const together = await Promise.all(requests.map((request) => collect(crowd, request)));
    const again = await Promise.all(
      requests.toReversed().map((request) => collect(crowd, request)),
    );
    expect(again.toReversed()).toEqual(together);
    const narrow = await open({ prefillRows: 7, maxRunning: 3, slots: 120 });
    expect(await Promise.all(requests.map((request) => collect(narrow, request)))).toEqual(
      together,
    );
    for (const [i, request] of requests.entries()) {
      if (i % 4 !== 0) continue;
      const alone = await open();
      expect(await collect(alone, request)).toEqual(together[i]);
      await alone[Symbol.asyncDispose]();
    }
    await crowd[Symbol.asyncDispose]();
    await narrow[Symbol.asyncDispose]();
  });

  test("log-probabilities equal those that the policy computes in training, bit for bit", async () => {
    const engine = await open();
    const request = { ...requestsOf(1)[0], maxTokens: 30, stopIds: [] };
    const sampled = await collect(engine, request);
    await engine[Symbol.asyncDispose]();
    const trainerBackend =
      backend === "wasm" ? await createWasmBackend({ threads: 2 }) : createReferenceBackend();
    const trainer = await loadPolicy(first.dir, trainerBackend);
    const { temperature } = request.sampling;
    expect(await trainerLogprobs(trainer, request.promptIds, sampled.ids, temperature)).toEqual(
      sampled.logprobs,
    );
    await trainerBackend[Symbol.asyncDispose]();
  });

  test("new weights give what a fresh engine with those weights gives", async () => {
    const engine = await open();
    const fresh = await open({ modelDir: second.dir, policyVersion: asId<PolicyVersion>("v2") });
    const request = { ...requestsOf(1)[0], maxTokens: 20, stopIds: [] };
    const before = await collect(engine, request);
    await engine.loadWeights(second.dir, asId<PolicyVersion>("v2"));
    const after = await collect(engine, request);
    expect(after).toEqual(await collect(fresh, request));
    expect(after.ids).not.toEqual(before.ids);
    expect(after.versions).toEqual(["v2"]);
    await engine[Symbol.asyncDispose]();
    await fresh[Symbol.asyncDispose]();
  });

  test("greedy sampling and truncated sampling work beside plain sampling", async () => {
    const engine = await open();
    const request = { ...requestsOf(1)[0], maxTokens: 8, stopIds: [] };
    const greedy = { ...request, sampling: { temperature: 0, topP: 1, topK: 0 } };
    const top1 = { ...request, sampling: { temperature: 1, topP: 1, topK: 1 } };
    const [a, b, c] = await Promise.all([
      collect(engine, greedy),
      collect(engine, top1),
      collect(engine, request),
    ]);
    expect(b.ids).toEqual(a.ids);
    expect(b.logprobs).toEqual(new Array(8).fill(0));
    expect(c).toEqual(await collect(engine, request));
    await engine[Symbol.asyncDispose]();
  });
});

test("a model of the demo's size gives the same bits on one thread, on two in a worker, and in training", async () => {
  const config = { ...smallConfig, ...demoSize };
  const folder = await createModelFolder(5, config);
  const random = createRandom(2);
  const ids = (count: number): number[] =>
    Array.from({ length: count }, () => random.integer(config.vocabularySize));
  const shared = ids(300);
  const requests = Array.from({ length: 5 }, (_, i) => ({
    ...requestsOf(1)[0],
    promptIds: [...shared, ...ids(i)],
    seed: i,
    maxTokens: 8,
    stopIds: [],
  }));
  const one = await createLocalEngine({ modelDir: folder.dir, slots: 1024, inProcess: true });
  const two = await createLocalEngine({ modelDir: folder.dir, slots: 1024, threads: 2 });
  const sampled = await Promise.all(requests.map((request) => collect(one, request)));
  expect(await Promise.all(requests.map((request) => collect(two, request)))).toEqual(sampled);
  expect(two.host.threads).toBe(2);
  await one[Symbol.asyncDispose]();
  await two[Symbol.asyncDispose]();
  const backend = await createWasmBackend({ threads: 2 });
  const trainer = await loadPolicy(folder.dir, backend);
  for (const [i, { promptIds }] of requests.entries()) {
    expect(await trainerLogprobs(trainer, promptIds, sampled[i].ids, 1)).toEqual(
      sampled[i].logprobs,
    );
  }
  await backend[Symbol.asyncDispose]();
  await folder.remove();
});

describe("in its worker thread", () => {
  test("it gives the same bits as in this thread, swaps weights, counts, and closes", async () => {
    const worker = await createLocalEngine({
      modelDir: first.dir,
      backend: "reference",
      slots: 512,
    });
    const here = await createLocalEngine({
      modelDir: first.dir,
      backend: "reference",
      slots: 512,
      inProcess: true,
    });
    const requests = requestsOf(6);
    const results = await Promise.all(requests.map((request) => collect(worker, request)));
    expect(results).toEqual(await Promise.all(requests.map((request) => collect(here, request))));
    await worker.loadWeights(second.dir, asId<PolicyVersion>("v2"));
    await here.loadWeights(second.dir, asId<PolicyVersion>("v2"));
    expect(await collect(worker, requests[0])).toEqual(await collect(here, requests[0]));
    expect(await worker.stats()).toMatchObject({ weightLoads: 1, running: 0, waiting: 0 });
    expect(worker.host).toMatchObject({ backendId: "reference", slots: 512 });
    await worker[Symbol.asyncDispose]();
    await here[Symbol.asyncDispose]();
    expect((await errorOf(collect(worker, requests[0]))).code).toBe("unavailable");
  });

  test("a missing folder and truncated weights are refused as model-invalid, also when swapping", async () => {
    const missing = join(first.dir, "missing");
    const start = await errorOf(createLocalEngine({ modelDir: missing, backend: "reference" }));
    expect(start.code).toBe("model-invalid");
    expect(start.message).toContain(missing);
    const broken = await createModelFolder(3);
    await truncate(join(broken.dir, "model.safetensors"), 900);
    const cut = await errorOf(createLocalEngine({ modelDir: broken.dir, backend: "reference" }));
    expect(cut.code).toBe("model-invalid");
    const engine = await createLocalEngine({
      modelDir: first.dir,
      backend: "reference",
      slots: 512,
    });
    const request = requestsOf(1)[0];
    const before = await collect(engine, request);
    const version = asId<PolicyVersion>("v2");
    expect((await errorOf(engine.loadWeights(broken.dir, version))).code).toBe("model-invalid");
    await writeFile(join(broken.dir, "config.json"), "{");
    expect((await errorOf(engine.loadWeights(broken.dir, version))).code).toBe("model-invalid");
    expect(await collect(engine, request)).toEqual(before);
    await engine[Symbol.asyncDispose]();
    await broken.remove();
  });

  test("weights whose logits overflow fail the call by name instead of sampling nonsense", async () => {
    const broken = await createModelFolder(4);
    const file = join(broken.dir, "model.safetensors");
    const bytes = await readFile(file);
    // The final norm, at the end of the file, becomes so large that the logits overflow.
    for (let at = bytes.length - 64; at < bytes.length; at += 4) bytes.writeFloatLE(3e38, at);
    await writeFile(file, bytes);
    const engine = await createLocalEngine({
      modelDir: broken.dir,
      backend: "reference",
      slots: 512,
    });
    const failure = await errorOf(collect(engine, requestsOf(1)[0]));
    expect(failure.code).toBe("engine-failed");
    expect(failure.message).toContain("not finite");
    await engine[Symbol.asyncDispose]();
    await broken.remove();
  });

  test("when the worker crashes, open and later calls fail with engine-failed", async () => {
    const channel = await createWorkerChannel();
    const options = { modelDir: first.dir, backend: "reference" as const, slots: 512 };
    const engine = await connectLocalEngine(options, channel);
    const open = errorOf(collect(engine, { ...requestsOf(1)[0], maxTokens: 400, stopIds: [] }));
    // A message that the worker cannot read throws in its event loop.
    channel.post(null as never);
    expect((await open).code).toBe("engine-failed");
    expect((await errorOf(collect(engine, requestsOf(1)[0]))).code).toBe("engine-failed");
    expect(engine.failure()?.message).toContain("crashed");
    await engine[Symbol.asyncDispose]();
  });
});
