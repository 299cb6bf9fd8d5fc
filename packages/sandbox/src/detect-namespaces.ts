/**
 * Finds out whether this machine can make namespaces, by making one.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bubblewrapArguments } from "./bubblewrap.js";
import type { NamespacePlan } from "./namespace-plan.js";
import { unshareCommand } from "./unshare.js";

/** The tool that works here, or why none does. */
export type NamespaceSupport =
  | { readonly tool: "bubblewrap" | "unshare" }
  | { readonly tool: null; readonly reason: string };

let cached: NamespaceSupport | undefined;

/** Probes once per process, 10 to 50 ms. Bubblewrap is preferred. */
export function detectNamespaces(): NamespaceSupport {
  cached ??= probe();
  return cached;
}

/** Probes one tool; null when it works, else what it said. */
export function probeNamespaceTool(tool: "bubblewrap" | "unshare"): string | null {
  if (process.platform !== "linux") return `namespaces need Linux, this is ${process.platform}`;
  const folder = mkdtempSync(join(tmpdir(), "gimbal-probe-"));
  try {
    const plan: NamespacePlan = {
      homePath: folder,
      workspacePath: folder,
      rootPath: folder,
      etcMounts: [],
      mounts: [],
      cwd: "/workspace",
      env: { PATH: "/usr/bin:/bin" },
      scratchBytes: 65_536,
    };
    const [file = "", ...rest] =
      tool === "bubblewrap"
        ? ["bwrap", ...bubblewrapArguments(plan), "true"]
        : unshareCommand(plan, ["true"], isRoot());
    const result = spawnSync(file, rest, { timeout: 10_000, encoding: "utf8" });
    if (result.status === 0) return null;
    return result.error?.message ?? (result.stderr.trim() || `exit code ${result.status}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Whether mounts need no user namespace of their own. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

function probe(): NamespaceSupport {
  const bubblewrap = probeNamespaceTool("bubblewrap");
  if (bubblewrap === null) return { tool: "bubblewrap" };
  const unshare = probeNamespaceTool("unshare");
  if (unshare === null) return { tool: "unshare" };
  return { tool: null, reason: `bubblewrap: ${bubblewrap}; unshare: ${unshare}` };
}
