/**
 * `run.json` and `tasks.json`: what a run folder says about itself, enough to continue it.
 */
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  attributeError,
  GimbalError,
  parseTask,
  type SandboxLevel,
  type Task,
} from "@gimbal-rl/core";
import { parseRunConfig, type RunConfig, type RunTasks } from "@gimbal-rl/run";
import { replaceFile } from "@gimbal-rl/trainer";

/** What `run.json` holds. */
export interface RunManifest {
  readonly format: 1;
  readonly config: RunConfig;
  readonly harness: {
    readonly id: string;
    readonly version: string;
    /** The module that exports the harness, absolute; absent for one that Gimbal brings, and in older runs. */
    readonly module?: string;
  };
  readonly sandboxLevel: SandboxLevel;
  /** Model name on the wire. */
  readonly model: string;
  readonly threads: number;
  /** Model folder of the start, absolute; absent in older runs. Needed only until checkpoint 0 is there. */
  readonly modelDir?: string;
}

/**
 * Makes a run folder. `tasks.json` first, so that a folder with a `run.json` is complete.
 * @throws {GimbalError} `config-invalid` when a setting is out of range or a run is there already, `store-unwritable`.
 */
export async function createRunFolder(
  runDir: string,
  manifest: RunManifest,
  tasks: RunTasks,
): Promise<void> {
  parseRunConfig(manifest.config);
  if (await isRunFolder(runDir)) {
    throw new GimbalError(
      "config-invalid",
      `${runDir} holds a run already. Continue it with "gimbal train --resume ${runDir}", or name another folder.`,
    );
  }
  try {
    await mkdir(runDir, { recursive: true });
    await replaceFile(join(runDir, "tasks.json"), `${JSON.stringify(tasks)}\n`);
    await replaceFile(join(runDir, "run.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  } catch (error) {
    throw attributeError(
      error,
      "store-unwritable",
      "config",
      `Cannot write the run folder ${runDir}; choose a folder you may write to with --run`,
    );
  }
}

/** Whether a folder holds a run. */
export async function isRunFolder(runDir: string): Promise<boolean> {
  return stat(join(runDir, "run.json")).then(
    () => true,
    () => false,
  );
}

async function readJson(path: string, what: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new GimbalError(
      "not-found",
      `${path} cannot be read; expected ${what}. Give the folder of a run that "gimbal train" or "gimbal demo" made.`,
      { cause: error },
    );
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new GimbalError(
      "config-invalid",
      `${path} is not valid JSON; the run cannot be continued.`,
      {
        cause: error,
      },
    );
  }
}

/** Reads a run folder back. @throws {GimbalError} `not-found`, `config-invalid`. */
export async function readRunFolder(
  runDir: string,
): Promise<{ readonly manifest: RunManifest; readonly tasks: RunTasks }> {
  const manifest = (await readJson(
    join(runDir, "run.json"),
    "the settings of a run",
  )) as RunManifest;
  if (typeof manifest !== "object" || manifest === null || manifest.format !== 1) {
    throw new GimbalError(
      "config-invalid",
      `${join(runDir, "run.json")} was not written by this version of Gimbal (format 1 expected).`,
    );
  }
  parseRunConfig(manifest.config);
  const tasksPath = join(runDir, "tasks.json");
  const tasks = parseTasks(tasksPath, await readJson(tasksPath, "the tasks of the run"));
  return { manifest, tasks };
}

function parseTasks(path: string, value: unknown): RunTasks {
  const lists = (value ?? {}) as Readonly<Partial<Record<keyof RunTasks, unknown>>>;
  const parseList = (name: keyof RunTasks): readonly Task[] => {
    const list = lists[name];
    if (!Array.isArray(list)) {
      throw new GimbalError("config-invalid", `${path} has no list "${name}"; expected tasks.`);
    }
    return list.map((one, index) => {
      try {
        return parseTask(one);
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        throw new GimbalError("config-invalid", `${path}, ${name}[${index}]: ${text}`, {
          cause: error,
        });
      }
    });
  };
  return {
    train: parseList("train"),
    heldout: parseList("heldout"),
    heldoutFamily: parseList("heldoutFamily"),
  };
}
