/**
 * The run folder of a command: the one that was named, else `runs/<kind>-<seed>-<time>`.
 */
import { join, resolve } from "node:path";
import type { CliContext } from "./context.js";

/** Absolute path of a command's run folder; nothing is made yet. */
export function resolveRunDir(
  context: Pick<CliContext, "cwd" | "clock">,
  kind: string,
  flags: { readonly run?: string; readonly seed: number },
): string {
  const stamp = new Date(context.clock.nowMs()).toISOString().replace(/[:.]/g, "-").slice(0, 19);
  return resolve(context.cwd, flags.run ?? join("runs", `${kind}-${flags.seed}-${stamp}`));
}
