/**
 * Finds out whether this machine can make namespaces, by making one.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bubblewrapCommand } from "./bubblewrap.js";
import type { NamespacePlan } from "./namespace-plan.js";
import { isRoot, type PrivilegeMode } from "./privileges.js";
import { unshareCommand } from "./unshare.js";

/** A way that works here. */
export interface NamespaceTool {
  readonly tool: "bubblewrap" | "unshare";
  readonly mode: PrivilegeMode;
}

/** The tool that works here, or why none does. */
export type NamespaceSupport = NamespaceTool | { readonly tool: null; readonly reason: string };

const cached = new Map<string, NamespaceSupport>();

/** Probes once per process and tool, 10 to 100 ms. Without a tool named, bubblewrap is preferred. */
export function detectNamespaces(tool?: "bubblewrap" | "unshare"): NamespaceSupport {
  const known = cached.get(tool ?? "");
  if (known !== undefined) return known;
  const support = probe(tool === undefined ? ["bubblewrap", "unshare"] : [tool]);
  cached.set(tool ?? "", support);
  return support;
}

function probe(tools: readonly NamespaceTool["tool"][]): NamespaceSupport {
  if (process.platform !== "linux") {
    return { tool: null, reason: `namespaces need Linux, this is ${process.platform}` };
  }
  const reasons: string[] = [];
  for (const tool of tools) {
    const modes: readonly PrivilegeMode[] = isRoot() ? ["drop", "map"] : ["map"];
    for (const mode of modes) {
      const reason = tryTool(tool, mode);
      if (reason === null) return { tool, mode };
      reasons.push(`${tool}: ${reason}`);
    }
  }
  return { tool: null, reason: [...new Set(reasons)].join("; ") };
}

/** Null when it works, else what it said. */
function tryTool(tool: NamespaceTool["tool"], mode: PrivilegeMode): string | null {
  const folder = mkdtempSync(join(tmpdir(), "gimbal-probe-"));
  try {
    const plan: NamespacePlan = {
      homePath: folder,
      workspacePath: folder,
      rootPath: folder,
      etcMounts: [],
      mounts: [],
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
      scratchBytes: 65_536,
    };
    const bubblewrap = bubblewrapCommand(plan, ["true"], mode);
    const [file = "", ...rest] =
      tool === "bubblewrap"
        ? ["bwrap", ...bubblewrap.args, "--", ...bubblewrap.command]
        : unshareCommand(plan, ["true"], mode);
    const result = spawnSync(file, rest, { timeout: 10_000, encoding: "utf8" });
    if (result.status === 0) return null;
    return result.error?.message ?? (result.stderr.trim() || `exit code ${result.status}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
