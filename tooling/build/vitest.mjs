/** Shared vitest project settings: packages resolve to each other's source, so tests need no build. */
import { defineProject } from "vitest/config";

const conditions = ["@gimbal-rl/source", "node", "import", "default"];

/** @param {import("vitest/config").UserWorkspaceConfig["test"]} [test] */
export function project(test = {}) {
  return defineProject({
    resolve: { conditions },
    ssr: { resolve: { conditions } },
    test: { environment: "node", ...test },
  });
}
