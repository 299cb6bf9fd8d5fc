/**
 * Time that a run used, over all the processes that worked on it.
 *
 * Law: each process writes what it has used so far when a step or a phase ends; the sum over processes of their latest
 * entries is the run's, so a kill hides at most what came after the last entry.
 */
import type { Store } from "@gimbal-rl/core";

/** Event kind of these entries. */
const processUsageKind = "process-usage";

/** Seconds used. */
export interface RunUsage {
  readonly wallSeconds: number;
  /** Seconds in which the sampler worked. */
  readonly samplingSeconds: number;
}

interface UsageEntry extends RunUsage {
  readonly process: string;
}

/**
 * Makes the writer of one process.
 * @param process - Tells this process from the others that worked on the run.
 */
export function createUsageWriter(
  store: Store,
  process: string,
): (usage: RunUsage) => Promise<void> {
  let written = 0;
  return async ({ samplingSeconds, wallSeconds }) => {
    written += 1;
    const entry: UsageEntry = { process, samplingSeconds, wallSeconds };
    await store.append(processUsageKind, `${process}/${written}`, entry);
  };
}

/** Sums the latest entries of all processes. */
export async function readRunUsage(store: Store): Promise<RunUsage> {
  const latest = new Map<string, UsageEntry>();
  for await (const { data } of store.read({ kind: processUsageKind })) {
    const entry = data as UsageEntry;
    latest.set(entry.process, entry);
  }
  let wallSeconds = 0;
  let samplingSeconds = 0;
  for (const entry of latest.values()) {
    wallSeconds += entry.wallSeconds;
    samplingSeconds += entry.samplingSeconds;
  }
  return { wallSeconds, samplingSeconds };
}
