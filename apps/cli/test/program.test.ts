/** The program itself: help, version, usage errors, and what only a real process shows. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { type CommandEntry, commandList, createContext, runCli } from "../src/index.js";
import { createModelFolder, gimbal } from "./support.js";

describe("help and usage", () => {
  test("help lists every command and exits 0; without a command it is bad usage", async () => {
    const help = await gimbal("--help");
    expect(help.exitCode).toBe(0);
    for (const { name } of commandList) expect(help.stdout).toMatch(new RegExp(`^  ${name} `, "m"));
    const nothing = await gimbal();
    expect(nothing).toMatchObject({ exitCode: 2, stdout: "" });
    expect(nothing.stderr).toContain("Usage: gimbal");
  });

  test.each(commandList.map(({ name }) => name))(
    "%s has help with an example and --json",
    async (name) => {
      const { exitCode, stderr, stdout } = await gimbal(name, "--help");
      expect(exitCode).toBe(0);
      expect(stderr).toBe("");
      expect(stdout).toContain(`$ gimbal ${name}`);
      expect(stdout).toContain("--json");
      expect((await gimbal("help", name)).stdout).toBe(stdout);
    },
  );

  test("the version is printed alone", async () => {
    expect(await gimbal("--version")).toEqual({
      exitCode: 0,
      stdout: "0.0.0-test\n",
      stderr: "",
    });
  });

  test.each<[argv: string[], words: string]>([
    [["sevre"], "unknown command 'sevre' (Did you mean serve?). See gimbal --help."],
    [["serve", "--prot", "1"], "unknown option '--prot' (Did you mean --port?). See gimbal serve"],
    [["serve", "--port", "70000"], "Expected a port from 0 to 65535"],
    [["proxy", "--seed", "-1"], "Expected a whole number from 0"],
    [["proxy", "--temperature", "warm"], "Expected a number from 0."],
    [["serve", "--threads", "0"], "Expected a whole number from 1 to 256."],
    [["inspect"], "missing required argument 'run'"],
    [["validate", "a", "b"], "too many arguments"],
    [["doctor", "--install", "codex"], "Allowed choices are pi."],
    [["train", "--group-size", "1"], "Expected a whole number from 2."],
    [["train", "--learning-rate", "0"], "Expected a number above 0."],
    [["train", "--temperature", "0"], "Expected a number above 0."],
    ...["train", "demo", "serve", "proxy"].map((name): [string[], string] => [
      [name, "--threads", "257"],
      "Expected a whole number from 1 to 256.",
    ]),
    [["rollout", "--task-file", "t.jsonl", "--tasks", "2"], "cannot be used with option '--tasks"],
    [
      ["rollout", "--task-file", "t.jsonl", "--split", "train"],
      "cannot be used with option '--spl",
    ],
    [["rollout", "--tasks", "tasks.jsonl"], "Expected a whole number from 1."],
    [["eval", "-k", "2"], "-k 2 needs at least 2 samples"],
  ])("bad usage %j: one line, exit 2", async (argv, words) => {
    const { exitCode, stderr, stdout } = await gimbal(...argv);
    expect(stderr).toContain(words);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(/^gimbal: /);
    expect(stdout).toBe("");
    expect(exitCode).toBe(2);
  });

  test("an unexpected exception is one line, and has its stack only when asked for", async () => {
    const entry: CommandEntry = {
      name: "broken",
      summary: "",
      load: () =>
        Promise.resolve({
          register: (program) => {
            program.command("broken").action(() => {
              throw new TypeError("x is\nnot a function");
            });
          },
        }),
    };
    for (const [debug, lines] of [
      ["", 1],
      ["1", 4],
    ] as const) {
      let stderr = "";
      const sink = {
        write: (text: string) => {
          stderr += text;
        },
      };
      const env = { GIMBAL_DEBUG: debug };
      const context = createContext({ version: "1", stdout: sink, stderr: sink, env });
      expect(await runCli(["broken"], context, { commands: [entry] })).toBe(1);
      expect(stderr).toMatch(/^gimbal: unexpected error: x is not a function\. Run again with/);
      expect(stderr.trimEnd().split("\n").length).toBeGreaterThanOrEqual(lines);
      expect(/^\s+at /m.test(stderr)).toBe(debug === "1");
    }
  });
});

const packageDir = fileURLToPath(new URL("..", import.meta.url));

function spawnGimbal(...argv: readonly string[]): ChildProcessWithoutNullStreams {
  const flags = ["--conditions=@gimbal-rl/source", "--import", "tsx", "src/main.ts"];
  return spawn(process.execPath, [...flags, ...argv], { cwd: packageDir });
}

function ended(child: ChildProcessWithoutNullStreams): Promise<number | null> {
  return new Promise((resolve) => child.once("close", (code) => resolve(code)));
}

describe("as a process", () => {
  test("a reader that leaves early is no failure", async () => {
    const child = spawnGimbal("--help");
    child.stdout.destroy();
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    expect(await ended(child)).toBe(0);
    expect(stderr).toBe("");
  }, 30_000);

  test("a server says when it is ready and ends cleanly on SIGTERM", async () => {
    const folder = await mkdtemp(join(tmpdir(), "gimbal-cli-"));
    try {
      const child = spawnGimbal("serve", "--json", "--model", await createModelFolder(folder));
      const line = await new Promise<string>((resolve) =>
        child.stdout.once("data", (chunk) => resolve(String(chunk))),
      );
      expect(JSON.parse(line)).toMatchObject({ pid: child.pid });
      child.kill("SIGTERM");
      expect(await ended(child)).toBe(0);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }, 30_000);
});
