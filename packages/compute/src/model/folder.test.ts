import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GimbalError } from "@gimbal-rl/core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ModelConfig } from "../policy.js";
import { createReferenceBackend } from "../reference/reference-backend.js";
import { randomFloats, randomInts } from "../test/checks.js";
import { buildTrie } from "../test/trie-tools.js";
import { createPolicy, loadPolicy, loadPolicyFromBytes, type ModelPolicy } from "./policy.js";
import { encodeSafetensors } from "./safetensors.js";

const config: ModelConfig = {
  architecture: "qwen3",
  vocabularySize: 13,
  width: 8,
  intermediateWidth: 12,
  layers: 1,
  heads: 2,
  keyValueHeads: 1,
  headWidth: 4,
  normEpsilon: 1e-6,
  ropeTheta: 10_000,
  maxPositions: 32,
  tiedEmbeddings: false,
};
const backend = createReferenceBackend();
let root = "";

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "gimbal-compute-"));
});
afterAll(() => rm(root, { recursive: true }));

const newDir = (): Promise<string> => mkdtemp(join(root, "model-"));

async function trainStep(policy: ModelPolicy, seed: number): Promise<void> {
  const { trie, rowsOf } = buildTrie([[...randomInts(10, 13, `ids ${seed}`)]]);
  const rows = Int32Array.from(rowsOf[0]);
  const targetIds = randomInts(10, 13, `targets ${seed}`);
  const options = { temperature: 1, keepForBackward: true };
  const pass = await policy.forward(trie, { rows, targetIds }, options);
  await pass.backward(randomFloats(10, `grads ${seed}`));
  await policy.update({ learningRate: 0.02, weightDecay: 0.1, maxGradientNorm: 1 });
}

async function refusal(action: Promise<unknown>): Promise<string> {
  try {
    await action;
  } catch (error) {
    if (!GimbalError.is(error)) return `not a GimbalError: ${String(error)}`;
    expect(error.message).not.toContain("\n");
    return `${error.code}: ${error.message}`;
  }
  return "accepted";
}

describe("a saved policy", () => {
  it("continues bit for bit as if it had not been interrupted, optimiser state and step included", async () => {
    const dir = await newDir();
    const whole = createPolicy(config, backend, 1);
    for (let step = 0; step < 3; step += 1) await trainStep(whole, step);
    await whole.save(dir, { optimizer: true });
    const resumed = await loadPolicy(dir, backend, { optimizer: true });
    const replaced = createPolicy(config, backend, 99);
    await trainStep(replaced, 50);
    await replaced.load(dir, { optimizer: true });
    for (let step = 3; step < 5; step += 1)
      for (const policy of [whole, resumed, replaced]) await trainStep(policy, step);
    expect(resumed.step).toBe(5);
    expect(await resumed.readWeights()).toEqual(await whole.readWeights());
    expect(await replaced.readWeights()).toEqual(await whole.readWeights());
    expect((await readdir(dir)).sort()).toEqual([
      "config.json",
      "model.safetensors",
      "optimizer.safetensors",
    ]);
  });

  it("starts a new optimiser when it is loaded without its state", async () => {
    const dir = await newDir();
    const policy = createPolicy(config, backend, 1);
    await trainStep(policy, 0);
    await policy.save(dir, { optimizer: false });
    await trainStep(policy, 1);
    await policy.load(dir, { optimizer: true });
    expect(policy.step).toBe(0);
    const fresh = await loadPolicy(dir, backend);
    await trainStep(policy, 2);
    await trainStep(fresh, 2);
    expect(await policy.readWeights()).toEqual(await fresh.readWeights());
  });

  it("keeps unknown fields of config.json and states the number format", async () => {
    const dir = await newDir();
    const policy = createPolicy(config, backend, 1);
    await policy.save(dir, { optimizer: false });
    const path = join(dir, "config.json");
    const json = JSON.parse(await readFile(path, "utf8"));
    await writeFile(path, JSON.stringify({ ...json, eos_token_id: 2, torch_dtype: "bfloat16" }));
    const other = await newDir();
    await (await loadPolicy(dir, backend)).save(other, { optimizer: false, format: "BF16" });
    const saved = JSON.parse(await readFile(join(other, "config.json"), "utf8"));
    expect(saved.eos_token_id).toBe(2);
    expect(saved.torch_dtype).toBe("bfloat16");
    const rounded = await (await loadPolicy(other, backend)).readWeights();
    for (const [name, weight] of await policy.readWeights())
      weight.forEach((value, i) => {
        expect(Math.abs((rounded.get(name)?.[i] ?? 0) - value)).toBeLessThanOrEqual(
          Math.abs(value) / 256,
        );
      });
  });

  it("loads from bytes in memory", async () => {
    const dir = await newDir();
    const policy = createPolicy(config, backend, 4);
    await policy.save(dir, { optimizer: false });
    const loaded = await loadPolicyFromBytes(
      {
        config: await readFile(join(dir, "config.json"), "utf8"),
        weights: await readFile(join(dir, "model.safetensors")),
      },
      backend,
    );
    expect(await loaded.readWeights()).toEqual(await policy.readWeights());
  });
});

describe("a model folder", () => {
  it("may be split into shards", async () => {
    const dir = await newDir();
    const policy = createPolicy(config, backend, 2);
    await policy.save(dir, { optimizer: false });
    await rm(join(dir, "model.safetensors"));
    const weights = [...(await policy.readWeights())];
    const shapes = new Map<string, readonly number[]>();
    const weightMap: Record<string, string> = {};
    for (const [name, values] of weights) {
      const inputs = name.includes("norm") ? null : name.includes("down_proj") ? 12 : 8;
      shapes.set(name, inputs === null ? [values.length] : [values.length / inputs, inputs]);
    }
    for (const [file, part] of [
      ["model-1.safetensors", weights.slice(0, 4)],
      ["model-2.safetensors", weights.slice(4)],
    ] as const) {
      const tensors = part.map(([name, values]) => {
        weightMap[name] = file;
        return { name, shape: shapes.get(name) ?? [], read: () => Promise.resolve(values) };
      });
      const pieces: Uint8Array[] = [];
      for await (const piece of encodeSafetensors(tensors, "F32", {})) pieces.push(piece);
      await writeFile(join(dir, file), Buffer.concat(pieces));
    }
    const index = join(dir, "model.safetensors.index.json");
    await writeFile(index, JSON.stringify({ weight_map: weightMap }));
    const loaded = await loadPolicy(dir, backend);
    expect(await loaded.readWeights()).toEqual(await policy.readWeights());
    await rm(join(dir, "model-2.safetensors"));
    expect(await refusal(loadPolicy(dir, backend))).toMatch(/shard model-2.safetensors is missing/);
    await writeFile(index, JSON.stringify({ weight_map: { a: "../x" } }));
    expect(await refusal(loadPolicy(dir, backend))).toMatch(/names no file of this folder/);
  });

  it("that is missing, truncated, of another shape or not finite is refused in one line and changes nothing", async () => {
    const policy = createPolicy(config, backend, 3);
    const before = await policy.readWeights();
    const dir = await newDir();
    await policy.save(dir, { optimizer: true });
    const path = join(dir, "model.safetensors");
    const good = await readFile(path);
    const load = () => refusal(policy.load(dir, { optimizer: true }));

    expect(await refusal(loadPolicy(join(root, "nowhere"), backend))).toMatch(
      /model-invalid: .*found no config.json/,
    );
    await truncate(path, good.length - 10);
    expect(await load()).toMatch(/model-invalid: .*truncated or corrupt/);
    await rm(path);
    expect(await load()).toMatch(/model-invalid: .*found no model.safetensors/);
    const nan = Buffer.from(good);
    nan.writeFloatLE(Number.NaN, good.length - 4);
    await writeFile(path, nan);
    expect(await load()).toMatch(/non-finite/);

    await createPolicy({ ...config, intermediateWidth: 16 }, backend, 1).save(dir, {
      optimizer: false,
    });
    expect(await load()).toMatch(/found intermediateWidth = 16; expected 12/);
    await policy.save(dir, { optimizer: false });
    const wider = createPolicy({ ...config, intermediateWidth: 16 }, backend, 1);
    const other = await newDir();
    await wider.save(other, { optimizer: false });
    await writeFile(path, await readFile(join(other, "model.safetensors")));
    expect(await load()).toMatch(/has shape \[16, 8\], expected \[12, 8\] by config.json/);
    await createPolicy({ ...config, tiedEmbeddings: true }, backend, 1).save(other, {
      optimizer: false,
    });
    await writeFile(path, await readFile(join(other, "model.safetensors")));
    expect(await load()).toMatch(/tensor lm_head.weight is missing/);
    expect(await policy.readWeights()).toEqual(before);
  });

  it("whose optimiser state is of another step than its weights is refused", async () => {
    const policy = createPolicy(config, backend, 3);
    const dir = await newDir();
    await policy.save(dir, { optimizer: true });
    await trainStep(policy, 1);
    await policy.save(dir, { optimizer: false });
    expect(await refusal(policy.load(dir, { optimizer: true }))).toMatch(
      /found step 0, but the weights are of step 1/,
    );
  });

  it("that cannot be written or holds a folder for a file gives one line with the next step", async () => {
    const policy = createPolicy(config, backend, 3);
    const dir = await newDir();
    await policy.save(dir, { optimizer: false });
    const below = join(dir, "model.safetensors", "below");
    expect(await refusal(policy.save(below, { optimizer: false }))).toMatch(
      /store-unwritable: Cannot write .*config.json; free disk space or check permissions/,
    );
    await rm(join(dir, "model.safetensors"));
    await mkdir(join(dir, "model.safetensors"));
    expect(await refusal(loadPolicy(dir, backend))).toMatch(/model-invalid: /);
  });

  it("with a tensor that the model does not have is refused", async () => {
    const dir = await newDir();
    await createPolicy(config, backend, 3).save(dir, { optimizer: false });
    const llama = { ...config, architecture: "llama" } as const;
    await createPolicy(llama, backend, 1).save(join(dir, "llama"), { optimizer: false });
    const path = join(dir, "llama", "model.safetensors");
    await writeFile(path, await readFile(join(dir, "model.safetensors")));
    expect(await refusal(loadPolicy(join(dir, "llama"), backend))).toMatch(
      /q_norm.weight is not part of a llama/,
    );
  });
});

describe("a policy", () => {
  it("refuses ids outside the vocabulary, terms outside the trie and positions past its end", async () => {
    const policy = createPolicy(config, backend, 3);
    const options = { temperature: 1, keepForBackward: true };
    const { trie } = buildTrie([[1, 2, 3]]);
    const run = (change: object, rows: number[], targets: number[]) =>
      refusal(
        policy.forward(
          { ...trie, ...change },
          { rows: Int32Array.from(rows), targetIds: Int32Array.from(targets) },
          options,
        ),
      );
    expect(await run({ tokenIds: Int32Array.of(1, 13, 3) }, [0], [1])).toMatch(/token id 13/);
    expect(await run({}, [0], [-1])).toMatch(/token id -1/);
    expect(await run({}, [3], [1])).toMatch(/Loss term at row 3; the trie has 3/);
    expect(await run({}, [0, 1], [1])).toMatch(/2 term rows and 1 targets/);
    const long = buildTrie([[...randomInts(33, 13, "long")]]).trie;
    expect(await run(long, [0], [1])).toMatch(/context-length-exceeded: Found position 32/);
  });

  it("differentiates a pass once, and only when asked to keep it", async () => {
    const policy = createPolicy(config, backend, 3);
    const { trie } = buildTrie([[1, 2, 3]]);
    const terms = { rows: Int32Array.of(0), targetIds: Int32Array.of(1) };
    const attempt = (keepForBackward: boolean, times: number) =>
      refusal(
        (async () => {
          const pass = await policy.forward(trie, terms, { temperature: 1, keepForBackward });
          for (let i = 0; i < times; i += 1) await pass.backward(Float32Array.of(1));
        })(),
      );
    expect(await attempt(true, 1)).toBe("accepted");
    expect(await attempt(true, 2)).toMatch(/bad-usage: .*freed/);
    expect(await attempt(false, 1)).toMatch(/bad-usage: .*not-kept/);
  });

  it("gives an empty pass for no terms, and empty logits for no logit rows", async () => {
    const policy = createPolicy(config, backend, 3);
    const { trie } = buildTrie([[1, 2, 3]]);
    const none = { rows: new Int32Array(0), targetIds: new Int32Array(0) };
    const pass = await policy.forward(trie, none, { temperature: 1, keepForBackward: true });
    expect([pass.rows, pass.logprobs.length]).toEqual([3, 0]);
    await pass.backward(new Float32Array(0));
    const plan = {
      rowStarts: Int32Array.of(0),
      rowCounts: Int32Array.of(3),
      selfSlots: Int32Array.of(0),
      spanOffsets: Int32Array.of(0, 0),
      spanSlots: new Int32Array(0),
      spanLengths: new Int32Array(0),
    };
    const positions = Int32Array.of(0, 1, 2);
    const input = { tokenIds: trie.tokenIds, positions, slots: positions, plan };
    const caches = policy.allocateCaches(3);
    const logits = policy.decode({ ...input, caches, logitRows: new Int32Array(0) });
    expect(logits.length).toBe(0);
  });

  it("refuses to update on a gradient that is not finite, and stays as it was", async () => {
    const policy = createPolicy(config, backend, 3);
    const before = await policy.readWeights();
    const { trie } = buildTrie([[1, 2, 3]]);
    const terms = { rows: Int32Array.of(0), targetIds: Int32Array.of(1) };
    const pass = await policy.forward(trie, terms, { temperature: 1, keepForBackward: true });
    await pass.backward(Float32Array.of(Number.NaN));
    expect(await refusal(policy.update({ learningRate: 1 }))).toMatch(/non-finite: .*norm of NaN/);
    expect(await policy.readWeights()).toEqual(before);
    expect(policy.step).toBe(0);
    expect((await policy.update({ learningRate: 1 })).gradientNorm).toBe(0);
  });
});
