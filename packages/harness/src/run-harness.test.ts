import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Harness, SandboxCommand, SandboxExit, SandboxInstance } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { defineHarness } from "./define-harness.js";
import { classifyRun, type HarnessEvent, runHarness } from "./run-harness.js";

const key = "sk-gimbal-secret";
const spec = {
  instruction: "Fix it.",
  model: "tiny",
  baseUrls: { openai: "http://h/v1", anthropic: "http://h", google: "http://h" },
  key,
  contextTokens: 4096,
  maxOutputTokens: 512,
};
const exited: SandboxExit = {
  exitCode: 0,
  signal: null,
  endedBy: "exit",
  stdout: `working\nkey ${key}\nall done\n`,
  stderr: "",
  outputBytes: 10,
  wallMs: 1,
  cpuMs: 1,
};

/** An instance that records what it was asked and answers with a fixed exit. */
function createScriptedInstance(exit: SandboxExit) {
  const commands: SandboxCommand[] = [];
  const written: Record<string, string> = {};
  const instance: SandboxInstance = {
    level: "namespace",
    homeDir: "/home/agent",
    workspaceDir: "/workspace",
    writeHomeFile: async (path, text) => {
      written[path] = text;
    },
    run: async (command) => {
      commands.push(command);
      // Two chunks that cut a line.
      const bytes = new TextEncoder().encode(exit.stdout);
      command.onStdout?.(bytes.subarray(0, 5));
      command.onStdout?.(bytes.subarray(5));
      return exit;
    },
    diff: async () => ({ changed: {}, refused: [] }),
    [Symbol.asyncDispose]: async () => undefined,
  };
  return { instance, commands, written };
}

const harness: Harness = defineHarness({
  id: "mine",
  command: (run) => ({
    argv: ["agent", "--home", run.homeDir, "--key", run.key],
    homeFiles: { ".agent/config": "x" },
    readOnlyPaths: ["/opt/agent"],
  }),
});
const signal = new AbortController().signal;

describe("runHarness", () => {
  it("fills in the instance's paths, writes HOME first and enforces the wall clock", async () => {
    const { instance, commands, written } = createScriptedInstance(exited);
    const budgets = { wallClockMs: 1_234 };
    const run = await runHarness({ harness, sandboxInstance: instance, spec, budgets, signal });
    expect(run.failureClass).toBe("none");
    expect(run.outcome).toMatchObject({ status: "completed", finalText: "all done" });
    expect(written).toEqual({ ".agent/config": "x" });
    expect(commands[0]).toMatchObject({ timeoutMs: 1_234, readOnlyPaths: ["/opt/agent"] });
    expect(commands[0]?.argv[2]).toBe("/home/agent");
    expect(commands[0]?.env).toMatchObject({
      OPENAI_API_KEY: key,
      OPENAI_BASE_URL: "http://h/v1",
      GIMBAL_INSTRUCTION: "Fix it.",
    });
  });

  it("keeps logs and events without the key", async () => {
    const { instance } = createScriptedInstance(exited);
    const logsDir = join(mkdtempSync(join(tmpdir(), "logs-")), "deep");
    const events: HarnessEvent[] = [];
    await runHarness({
      harness,
      sandboxInstance: instance,
      spec,
      budgets: {},
      signal,
      logsDir,
      onEvent: (event) => events.push(event),
    });
    const texts = ["stdout.log", "stderr.log", "run.json"].map((name) =>
      readFileSync(join(logsDir, name), "utf8"),
    );
    expect(texts.join("")).not.toContain(key);
    expect(texts[0]).toContain("[session key]");
    expect(JSON.parse(texts[2] ?? "")).toMatchObject({
      failureClass: "none",
      exit: { exitCode: 0 },
    });
    const lines = events.flatMap((event) => (event.type === "harness-line" ? [event.line] : []));
    expect(lines).toEqual(["working", "key [session key]", "all done"]);
    expect(JSON.stringify(events.filter(({ type }) => type !== "harness-end"))).not.toContain(key);
    rmSync(logsDir, { recursive: true });
  });

  it("turns an adapter that throws into a failed run", async () => {
    const { instance } = createScriptedInstance(exited);
    const broken: Harness = {
      ...harness,
      readOutcome: () => {
        throw new Error("bad stream");
      },
    };
    const run = await runHarness({
      harness: broken,
      sandboxInstance: instance,
      spec,
      budgets: {},
      signal,
    });
    expect(run.failureClass).toBe("harness-crash");
    expect(run.outcome.errorText).toContain("bad stream");
  });

  it("classifies our own limits before the harness's words", () => {
    const completed = harness.readOutcome(exited);
    const failed = harness.readOutcome({ exitCode: 2, stdout: "", stderr: "line\nlast words\n" });
    expect(failed).toMatchObject({ status: "failed", errorText: "last words", finalText: null });
    expect(classifyRun(completed, { endedBy: "timeout" })).toBe("wall-clock");
    expect(classifyRun(completed, { endedBy: "output-limit" })).toBe("output-limit");
    expect(classifyRun(completed, { endedBy: "aborted" })).toBe("infrastructure");
    expect(classifyRun(failed, { endedBy: "exit" })).toBe("harness-crash");
  });
});
