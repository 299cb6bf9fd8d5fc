/**
 * The first `ts` block of each published package's README is a program that runs.
 *
 * It is written beside this folder's dependencies and started with Node on the source condition, as a user's own file
 * would be; it must end by itself with exit code 0 and print no error.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));
// Below node_modules, so that git, Biome and the other checks do not see the copies.
const folder = join(root, "tests/node_modules", `.readme-${process.pid}`);

const examples = ["packages", "apps"].flatMap((parent) =>
  readdirSync(join(root, parent)).flatMap((name) => {
    const readme = join(root, parent, name, "README.md");
    if (!existsSync(readme)) return [];
    const code = /```ts\n([\s\S]*?)```/.exec(readFileSync(readme, "utf8"))?.[1];
    return code === undefined ? [] : [{ name, code }];
  }),
);

/** Runs a file to its end: exit code, or null when it was killed for taking too long, and all it printed. */
function runFile(file: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const flags = ["--conditions=@gimbal-rl/source", "--import", "tsx"];
    const child = spawn(process.execPath, [...flags, file], {
      cwd: folder,
      timeout: 50_000,
      killSignal: "SIGKILL",
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, output }));
  });
}

describe("the example in the README of", () => {
  beforeAll(() => mkdirSync(folder, { recursive: true }));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("at least every library package exists", () => {
    const names = readdirSync(join(root, "packages"));
    expect(names.filter((name) => !examples.some((example) => example.name === name))).toEqual([]);
  });

  it("every package imports only what a user can install", () => {
    const isPrivate = (specifier: string): boolean =>
      ["testkit", "checks", "tiny", "tests", "examples"].some((name) =>
        specifier.startsWith(`@gimbal-rl/${name}`),
      );
    const offenders = examples.flatMap(({ name, code }) =>
      [...code.matchAll(/from "([^"]+)"/g)]
        .map(([, specifier]) => specifier ?? "")
        .filter((specifier) => specifier.startsWith(".") || isPrivate(specifier))
        .map((specifier) => `${name}: ${specifier}`),
    );
    expect(offenders).toEqual([]);
  });

  for (const { name, code } of examples) {
    it(`${name} runs to its end`, async () => {
      const file = join(folder, `${name}.mts`);
      writeFileSync(file, code);
      const { code: exitCode, output } = await runFile(file);
      expect(exitCode, output).toBe(0);
    });
  }
});
