/**
 * The scribe: a small Qwen3 policy with hand-made weights, so that tests of the whole road need no trained weights.
 *
 * Each turn it writes "yes" or "no" (four to one) into answer.txt with a valid tool call, or says "done" and stops. What
 * it writes follows from the last token alone, through one-hot embeddings and an output row per next token; attention
 * and MLP have ordinary random weights, so every parameter takes part in training.
 */
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createPolicy, createReferenceBackend, type ModelConfig } from "@gimbal-rl/compute";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { spellOnce } from "./scribe-text.js";

const width = 64;
/** Logit of a certain next token; the thousands of others together keep 3e-4 of the mass. */
const certain = 16;
/** Length of an embedding: what attention and MLP add to it stays small against this. */
const loud = 100;

/** Moves from a token to each of several next ones with a share of the probability. */
type Moves = ReadonlyMap<number, readonly (readonly [next: number, share: number])[]>;

/**
 * Writes the policy as a model folder with gimbal-tiny's tokenizer and template.
 * @param turnShare - Probability that a turn is a tool call and not "done".
 */
export async function writeScribePolicy(dir: string, turnShare = 0.7): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const name of ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"]) {
    await copyFile(join(tinyModelDir, name), join(dir, name));
  }
  const { tokenizer } = await loadRendererFromFolder(dir);
  const idOf = (token: string): number => {
    const id = tokenizer.tokenToId(token);
    if (id === undefined) throw new Error(`gimbal-tiny has no token ${token}.`);
    return id;
  };
  const start = tokenizer.encode("<|im_start|>assistant\n", { allowSpecial: true }).at(-1) ?? 0;
  const taken = new Set([start]);
  const call = '\n{"name": "write", "arguments": {"path": "answer.txt", "content": "';
  const head = [idOf("<tool_call>"), ...spellOnce(tokenizer, call, taken)];
  const yes = spellOnce(tokenizer, "yes", taken);
  const no = spellOnce(tokenizer, "no", taken);
  const tail = [...spellOnce(tokenizer, '"}}\n', taken), idOf("</tool_call>")];
  const done = spellOnce(tokenizer, "done", taken);
  const end = idOf("<|im_end|>");

  const moves = new Map<number, (readonly [number, number])[]>();
  const chain = (ids: readonly number[]): void => {
    for (const [i, next] of ids.slice(1).entries()) moves.set(ids[i] ?? 0, [[next, 1]]);
  };
  for (const answer of [yes, no]) chain([...answer, ...tail]);
  chain(head);
  chain([...tail, end]);
  chain([...done, end]);
  moves.set(start, [
    [head[0] ?? 0, turnShare],
    [done[0] ?? 0, 1 - turnShare],
  ]);
  moves.set(head.at(-1) ?? 0, [
    [yes[0] ?? 0, 0.8],
    [no[0] ?? 0, 0.2],
  ]);

  const config: ModelConfig = {
    architecture: "qwen3",
    vocabularySize: tokenizer.vocabularySize,
    width,
    intermediateWidth: 96,
    layers: 1,
    heads: 2,
    keyValueHeads: 1,
    headWidth: 16,
    normEpsilon: 1e-6,
    ropeTheta: 10_000,
    maxPositions: 2048,
    tiedEmbeddings: false,
  };
  await using policy = createPolicy(config, createReferenceBackend(), 1);
  await policy.save(dir, { optimizer: false });
  await editWeights(join(dir, "model.safetensors"), moves);
}

/** Overwrites the embeddings of the tokens that move, and the output rows that make them move. */
async function editWeights(path: string, moves: Moves): Promise<void> {
  if (moves.size > width) throw new Error(`${moves.size} tokens do not fit into width ${width}.`);
  await editTensors(path, (tensor) => {
    const embeddings = tensor("model.embed_tokens.weight");
    const outputs = tensor("lm_head.weight");
    [...moves].forEach(([id, nexts], dimension) => {
      embeddings.fill(0, id * width, (id + 1) * width);
      embeddings[id * width + dimension] = loud;
      // The last norm makes the single entry a sqrt(width).
      for (const [next, share] of nexts) {
        outputs[next * width + dimension] = (certain + Math.log(share)) / Math.sqrt(width);
      }
    });
  });
}

/** Changes f32 tensors of a safetensors file in place. */
export async function editTensors(
  path: string,
  edit: (tensor: (name: string) => Float32Array) => void,
): Promise<void> {
  const bytes = await readFile(path);
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes)) as Record<
    string,
    { readonly dtype: string; readonly data_offsets: readonly [number, number] }
  >;
  const writes: (() => void)[] = [];
  edit((name) => {
    const entry = header[name];
    if (entry?.dtype !== "F32") throw new Error(`${path} has no f32 tensor ${name}.`);
    const [from, to] = entry.data_offsets.map((offset) => 8 + headerBytes + offset);
    const copy = new Uint8Array(bytes.subarray(from, to));
    writes.push(() => bytes.set(copy, from));
    return new Float32Array(copy.buffer);
  });
  for (const write of writes) write();
  await writeFile(path, bytes);
}
