/**
 * `pnpm bench <name> [arguments]`: runs bench/<name>.mjs from source, without a build.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const here = import.meta.dirname;
const [name, ...rest] = process.argv.slice(2);
const file = join(here, `${name}.mjs`);
if (name === undefined || name === "run" || !existsSync(file)) {
  const names = readdirSync(here)
    .filter((entry) => entry.endsWith(".mjs") && entry !== "run.mjs")
    .map((entry) => entry.slice(0, -4));
  console.error(`Usage: pnpm bench <name>. Found: ${names.join(", ")}.`);
  process.exit(2);
}
const flags = ["--conditions=@gimbal-rl/source", "--import", "tsx"];
const { status } = spawnSync(process.execPath, [...flags, file, ...rest], {
  stdio: "inherit",
  cwd: join(here, ".."),
});
process.exit(status ?? 1);
