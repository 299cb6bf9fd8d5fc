import { defineConfig } from "vitest/config";

/** One process pool over all projects; each project's own config sets the source condition. */
export default defineConfig({
  test: {
    projects: ["packages/*", "apps/*", "tooling/{checks,testkit,tiny}/vitest.config.ts", "tests"],
    passWithNoTests: false,
  },
});
