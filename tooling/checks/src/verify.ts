/**
 * `pnpm verify`: everything that CI checks, one step after the other, then a table of what took how long.
 *
 * A failing step does not hide the next ones. `--skip build,test` leaves steps out (CI has just run them through
 * `npm test`); `--only knip` runs the named ones.
 */
import { spawn, spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { root } from "./workspace.js";

interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

/**
 * On a branch, its own changes need a changeset. On main itself the pending ones are checked; without any main (a bare
 * checkout of one commit) there is nothing to compare with.
 */
function changesetBase(): readonly string[] {
  const git = (...parameters: string[]): string =>
    spawnSync("git", parameters, { cwd: root, encoding: "utf8" }).stdout.trim();
  const head = git("rev-parse", "HEAD");
  for (const ref of ["main", "origin/main"]) {
    const base = git("merge-base", ref, "HEAD");
    if (base !== "") return base === head && ref === "main" ? [] : [`--since=${ref}`];
  }
  return ["--since=HEAD"];
}

// Biome colours its output into files too.
const plain = process.stdout.isTTY ? [] : ["--colors=off"];
const vitest = ["vitest", "run", "--reporter=default", "--reporter=json"] as const;

const steps: readonly Step[] = [
  { name: "format and lint", command: ["biome", "ci", ...plain, "--error-on-warnings", "."] },
  { name: "boundaries", command: ["turbo", "boundaries"] },
  { name: "build", command: ["turbo", "run", "build", "--output-logs=errors-only"] },
  { name: "typecheck", command: ["turbo", "run", "typecheck", "--output-logs=errors-only"] },
  { name: "test", command: [...vitest, "--outputFile.json=test-results.json"] },
  { name: "pack", command: ["turbo", "run", "pack:check", "--output-logs=errors-only"] },
  { name: "api", command: ["tsx", "tooling/checks/src/api-reports.ts", "check"] },
  { name: "knip", command: ["knip", "--no-progress", "--treat-config-hints-as-errors"] },
  { name: "changesets", command: ["changeset", "status", ...changesetBase()] },
];

const { values } = parseArgs({
  options: { skip: { type: "string", default: "" }, only: { type: "string", default: "" } },
});
const skip = new Set(values.skip.split(",").filter((name) => name !== ""));
const only = new Set(values.only.split(",").filter((name) => name !== ""));
const unknown = [...skip, ...only].filter((name) => !steps.some((step) => step.name === name));
if (unknown.length > 0) {
  const names = steps.map(({ name }) => name).join(", ");
  process.stderr.write(`verify: unknown step ${unknown.join(", ")}; known are ${names}.\n`);
  process.exit(2);
}

function run({ command: [program, ...parameters] }: Step): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, parameters, {
      cwd: root,
      stdio: ["ignore", "inherit", "inherit"],
    });
    child.on("error", () => resolve(false));
    child.on("close", (code) => resolve(code === 0));
  });
}

const rows: string[] = [];
let failed = 0;
for (const step of steps) {
  if (skip.has(step.name) || (only.size > 0 && !only.has(step.name))) continue;
  process.stdout.write(`\n=== ${step.name}: ${step.command.join(" ")}\n`);
  const startMs = performance.now();
  const passed = await run(step);
  if (!passed) failed += 1;
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  rows.push(`${passed ? "ok    " : "FAILED"} ${seconds.padStart(7)} s  ${step.name}`);
}
process.stdout.write(`\n${rows.join("\n")}\n`);
process.exitCode = failed === 0 ? 0 : 1;
