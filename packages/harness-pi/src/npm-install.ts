/**
 * Installs one exact package version with npm, without running any of its scripts.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { GimbalError } from "@gimbal-rl/core";

const execute = promisify(execFile);

/** Settings of the user that npm needs to reach their registry; the rest of `npm run`'s environment would leak in. */
const keptSettings =
  /^npm_config_(registry|userconfig|globalconfig|cafile|cache|proxy|https_proxy|noproxy)$/i;

/**
 * Runs `npm install` in an empty folder.
 *
 * @throws {GimbalError} `harness-missing` when npm is not there or fails; `aborted`.
 */
export async function npmInstall(
  folder: string,
  packages: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  await writeFile(join(folder, "package.json"), '{"private":true}\n');
  const { file, first } = npmCommand();
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--omit=dev", "--loglevel=error"];
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name) || keptSettings.test(name)),
  );
  try {
    await execute(file, [...first, "install", ...flags, ...packages], {
      cwd: folder,
      env,
      signal,
      maxBuffer: 16_777_216,
    });
  } catch (error) {
    if (signal.aborted) throw new GimbalError("aborted", "The install was stopped.");
    const text = (error as { readonly stderr?: string }).stderr?.trim() || String(error);
    throw new GimbalError(
      "harness-missing",
      `npm could not install ${packages.join(" ")}: ${text.split("\n")[0]}. Check the network and the registry, then run: gimbal doctor --install pi`,
      { cause: error, boundary: "harness", details: { stderr: text } },
    );
  }
}

/** The version a folder's package says it has; null when there is none. */
export async function readPackageVersion(packageDir: string): Promise<string | null> {
  try {
    const text = await readFile(join(packageDir, "package.json"), "utf8");
    const version = (JSON.parse(text) as { readonly version?: unknown }).version;
    return typeof version === "string" ? version : null;
  } catch {
    return null;
  }
}

/** The npm beside this Node, so that no other Node version on PATH interferes; else the one on PATH. */
function npmCommand(): { readonly file: string; readonly first: readonly string[] } {
  const base = dirname(dirname(process.execPath));
  for (const folder of ["lib/node_modules", "share/nodejs", "node_modules"]) {
    const script = join(base, folder, "npm", "bin", "npm-cli.js");
    if (existsSync(script)) return { file: process.execPath, first: [script] };
  }
  return { file: process.platform === "win32" ? "npm.cmd" : "npm", first: [] };
}
