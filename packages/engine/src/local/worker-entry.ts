/**
 * Where the code of the engine's worker thread is.
 *
 * Law: built code uses the built worker beside it; source code (a clone, vitest) bundles the worker from source, never
 * from a build that may be stale.
 */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { WorkerOptions } from "node:worker_threads";
import { attributeError, GimbalError } from "@gimbal-rl/core";

/** What `new Worker` takes. */
export interface WorkerEntry {
  readonly url: URL;
  readonly options: WorkerOptions;
}

let bundled: Promise<WorkerEntry> | null = null;

/**
 * Finds or makes the worker's code.
 * @throws {GimbalError} `engine-failed` when it is missing or cannot be bundled.
 */
export function resolveWorkerEntry(here: string = import.meta.url): Promise<WorkerEntry> {
  if (!here.endsWith(".ts")) return Promise.resolve(builtEntry(here));
  bundled ??= bundleFromSource(here);
  return bundled;
}

function builtEntry(here: string): WorkerEntry {
  const url = new URL("./local-worker.js", here);
  if (existsSync(fileURLToPath(url))) return { url, options: {} };
  throw new GimbalError(
    "engine-failed",
    `The engine's worker ${fileURLToPath(url)} is missing. Reinstall @gimbal-rl/engine; when you bundle it, keep the package external or pass inProcess: true.`,
    { boundary: "compute" },
  );
}

async function bundleFromSource(here: string): Promise<WorkerEntry> {
  // Outside `src` and reached by URL: the published package neither ships nor needs it.
  const script = new URL("../../scripts/bundle-worker.mjs", here).href;
  try {
    const { bundleWorker } = (await import(script)) as { bundleWorker(): Promise<string> };
    // The flags of the parent (loaders, conditions) are not for a bundle that needs nothing.
    return { url: new URL(await bundleWorker()), options: { execArgv: [] } };
  } catch (error) {
    bundled = null;
    const context = "The engine's worker could not be bundled from source (run pnpm install?)";
    throw attributeError(error, "engine-failed", "compute", context);
  }
}
