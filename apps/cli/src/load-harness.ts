/**
 * `--harness pi`, or the path of a module whose default export is a Harness (see `defineHarness`).
 */
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { GimbalError, type Harness, type Sandbox } from "@gimbal-rl/core";
import { tinyHarness } from "@gimbal-rl/gimbal-tiny";
import { createPiHarness } from "@gimbal-rl/harness-pi";

function isHarness(value: unknown): value is Harness {
  if (typeof value !== "object" || value === null) return false;
  const { id, launch, prepare, readOutcome } = value as Partial<Harness>;
  const functions = [launch, prepare, readOutcome];
  return typeof id === "string" && functions.every((one) => typeof one === "function");
}

/** Absolute path of the module that a name stands for; null for a harness that Gimbal brings. */
export function harnessModule(name: string, cwd: string): string | null {
  return name === "pi" ? null : resolve(cwd, name);
}

/**
 * Finds a harness by name or path. Nothing is installed yet.
 * @throws {GimbalError} `bad-usage` for something that is neither.
 */
export async function loadHarness(name: string, cwd: string, sandbox: Sandbox): Promise<Harness> {
  const path = harnessModule(name, cwd);
  if (path === null) return createPiHarness({ version: tinyHarness.version, warmUpIn: sandbox });
  if (!existsSync(path)) {
    throw new GimbalError(
      "bad-usage",
      `Unknown harness "${name}"; expected pi, or the path of a module that exports a harness by default.`,
    );
  }
  const loaded = await importModule(path);
  if (isHarness(loaded.default)) return loaded.default;
  throw new GimbalError(
    "bad-usage",
    `${path} has no harness as its default export. Export the result of defineHarness (@gimbal-rl/harness).`,
  );
}

/** @throws {GimbalError} `bad-usage` with what the module threw: it is the user's code, not ours. */
async function importModule(path: string): Promise<{ default?: unknown }> {
  try {
    return (await import(pathToFileURL(path).href)) as { default?: unknown };
  } catch (error) {
    const thrown = error instanceof Error ? error.message : String(error);
    throw new GimbalError(
      "bad-usage",
      `${path} could not be loaded: ${thrown}. A harness module is JavaScript (.mjs), and what it imports must be installed beside it (npm i @gimbal-rl/harness).`,
      { cause: error },
    );
  }
}
