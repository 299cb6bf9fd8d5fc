/**
 * Volatile rules for sandboxes that cannot show fixed paths (level `process`): per-attempt folders and the place of the
 * harness's install are replaced before rendering, so that the attempts of a group share their prompt.
 */
import { defaultVolatileRules, type VolatileRule } from "@gimbal-rl/proxy";

/** Escapes text for a regular expression. */
function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/**
 * Rules that map the folders of a sandbox root, and a harness cache, to the paths that level `namespace` shows.
 *
 * @param sandboxRoot - Folder in which instances are made; each is `gimbal-XXXXXX` below it.
 * @param harnessCache - Folder with `harness/<id>-<version>` installs.
 */
export function stablePathRules(sandboxRoot: string, harnessCache: string): VolatileRule[] {
  const instance = `${literal(sandboxRoot.replace(/\/$/, ""))}/gimbal-[A-Za-z0-9_-]+`;
  const roles = ["system", "user", "tool"] as const;
  return [
    ...defaultVolatileRules,
    {
      id: "sandbox-workspace",
      pattern: new RegExp(`${instance}/workspace(?![A-Za-z0-9_-])`, "g"),
      replacement: "/workspace",
      roles,
    },
    {
      id: "sandbox-home",
      pattern: new RegExp(`${instance}/home(?![A-Za-z0-9_-])`, "g"),
      replacement: "/home/agent",
      roles,
    },
    {
      id: "harness-install",
      pattern: new RegExp(`${literal(harnessCache.replace(/\/$/, ""))}/harness/pi-[0-9.]+`, "g"),
      replacement: "/opt/pi",
      roles,
    },
  ];
}
