/**
 * Checkpoints of a run: `checkpoints/<step>/` holds model.safetensors, config.json, optimizer.safetensors, tokenizer
 * files and state.json, so that each is also a model folder that loads unchanged.
 *
 * Law: a checkpoint is there completely or not at all. `state.json` is written last and lists the size of every other
 * file; the latest checkpoint is found by scanning for complete ones, so no pointer can be stale.
 */
import { copyFile, mkdir, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { TrainablePolicy } from "@gimbal-rl/compute";
import { asId, attributeError, type PolicyVersion } from "@gimbal-rl/core";
import { createFolder, isMissing, removeFolder, writeFileSynced } from "./durable-files.js";
import type { StepRecord } from "./step-record.js";

/** What `state.json` holds. */
export interface CheckpointState {
  readonly format: 1;
  /** Finished steps. */
  readonly step: number;
  readonly policyVersion: PolicyVersion;
  /** Seed of the run. */
  readonly seed: number;
  /** The step's metrics line; null at step 0. */
  readonly record: StepRecord | null;
  /** Size of every other file, bytes. */
  readonly files: Readonly<Record<string, number>>;
}

/** A complete checkpoint. */
export interface Checkpoint {
  readonly step: number;
  readonly dir: string;
  readonly state: CheckpointState;
}

/** Which checkpoints stay; step 0 always does. */
export interface Retention {
  /** The newest this many. At least 1. */
  readonly last: number;
  /** And every step divisible by this. */
  readonly every?: number;
}

/** The files beside the weights that make a folder loadable by name. */
const tokenizerFiles = [
  "added_tokens.json",
  "chat_template.jinja",
  "generation_config.json",
  "merges.txt",
  "special_tokens_map.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "vocab.json",
];

const checkpointsFolder = (runDir: string): string => join(runDir, "checkpoints");

/** The version of the weights after a number of finished steps: `step-<n>`. */
export function policyVersionOf(step: number): PolicyVersion {
  return asId<PolicyVersion>(`step-${step}`);
}

function parseState(text: string): CheckpointState | null {
  try {
    const value = JSON.parse(text) as Partial<CheckpointState> | null;
    const valid =
      value?.format === 1 && typeof value.step === "number" && typeof value.files === "object";
    return valid ? (value as CheckpointState) : null;
  } catch {
    return null;
  }
}

async function readCheckpoint(dir: string, step: number): Promise<Checkpoint | null> {
  try {
    const state = parseState(await readFile(join(dir, "state.json"), "utf8"));
    if (state?.step !== step || !("model.safetensors" in state.files)) return null;
    for (const [name, size] of Object.entries(state.files)) {
      if ((await stat(join(dir, name))).size !== size) return null;
    }
    return { step, dir, state };
  } catch (error) {
    if (isMissing(error)) return null;
    throw attributeError(error, "checkpoint-invalid", "config", `Checkpoint ${dir} is unreadable`);
  }
}

/**
 * The complete checkpoints of a run, oldest first; empty when the run has none. Incomplete folders are passed over.
 * @throws {GimbalError} `checkpoint-invalid` when a folder cannot be read at all.
 * @example
 * const latest = (await findCheckpoints(runDir)).at(-1);
 */
export async function findCheckpoints(runDir: string): Promise<readonly Checkpoint[]> {
  const parent = checkpointsFolder(runDir);
  const names = await readdir(parent).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw attributeError(error, "checkpoint-invalid", "config", `Cannot list ${parent}`);
  });
  const steps = names.filter((name) => /^\d+$/.test(name)).map(Number);
  const found: Checkpoint[] = [];
  for (const step of steps.sort((a, b) => a - b)) {
    const checkpoint = await readCheckpoint(join(parent, String(step)), step);
    if (checkpoint !== null) found.push(checkpoint);
  }
  return found;
}

async function copySynced(from: string, to: string): Promise<void> {
  try {
    await copyFile(from, to);
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  const handle = await open(to, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** What a new checkpoint is made from. */
export interface WriteCheckpointOptions {
  readonly policy: TrainablePolicy;
  readonly runDir: string;
  readonly state: Omit<CheckpointState, "files" | "format">;
  /** Folder whose tokenizer files are copied; null copies none. */
  readonly tokenizerDir: string | null;
  /** Called when every file is written and the folder is not in place yet. */
  readonly onWritten?: (temporaryDir: string) => void;
}

/**
 * Writes `checkpoints/<step>/` atomically.
 * @throws {GimbalError} `store-unwritable`.
 */
export async function writeCheckpoint(options: WriteCheckpointOptions): Promise<Checkpoint> {
  const { onWritten, policy, runDir, state, tokenizerDir } = options;
  const parent = checkpointsFolder(runDir);
  const files: Record<string, number> = {};
  const full: CheckpointState = { format: 1, ...state, files };
  try {
    const dir = await createFolder(parent, String(state.step), async (temporary) => {
      await policy.save(temporary, { optimizer: true });
      if (tokenizerDir !== null) {
        for (const name of tokenizerFiles) {
          await copySynced(join(tokenizerDir, name), join(temporary, name));
        }
      }
      for (const name of (await readdir(temporary)).sort()) {
        files[name] = (await stat(join(temporary, name))).size;
      }
      await writeFileSynced(join(temporary, "state.json"), `${JSON.stringify(full, null, 2)}\n`);
      onWritten?.(temporary);
    });
    return { step: state.step, dir, state: full };
  } catch (error) {
    throw attributeError(
      error,
      "store-unwritable",
      "config",
      `Cannot write a checkpoint to ${parent}`,
    );
  }
}

/** Removes what a killed writer left behind; only one process may train a run. */
export async function removeLeftovers(runDir: string): Promise<void> {
  const parent = checkpointsFolder(runDir);
  await mkdir(parent, { recursive: true });
  for (const name of await readdir(parent)) {
    if (name.startsWith(".tmp-")) await rm(join(parent, name), { recursive: true, force: true });
  }
}

/** Removes the checkpoints that the rule does not keep. */
export async function applyRetention(
  checkpoints: readonly Checkpoint[],
  { every, last }: Retention,
): Promise<readonly Checkpoint[]> {
  const kept: Checkpoint[] = [];
  for (const [index, checkpoint] of checkpoints.entries()) {
    const { step } = checkpoint;
    const keep =
      step === 0 ||
      index >= checkpoints.length - Math.max(1, last) ||
      (every !== undefined && step % every === 0);
    if (keep) kept.push(checkpoint);
    else await removeFolder(checkpoint.dir);
  }
  return kept;
}
