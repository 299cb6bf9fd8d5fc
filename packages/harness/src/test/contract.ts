/**
 * What every harness adapter must keep, as cases for any test runner.
 *
 * Each case starts the real program in a real sandbox against a scripted server and fails by throwing.
 */
import assert from "node:assert/strict";
import type { Harness, HarnessRunSpec, Sandbox } from "@gimbal-rl/core";
import { type HarnessRun, runHarness } from "../run-harness.js";
import { type ScriptedServer, type ScriptedTurn, startScriptedServer } from "./scripted-server.js";

/** What a contract run needs to know about the adapter. */
export interface HarnessContractOptions {
  /** Prepared. */
  readonly harness: Harness;
  readonly sandbox: Sandbox;
  /** The turn that makes this harness write a file. */
  readonly writeFile: (path: string, text: string) => ScriptedTurn;
  /** The turn that makes it run a shell command; null when it has no shell. */
  readonly runShell: ((command: string) => ScriptedTurn) | null;
  /** Wall clock of an ordinary run. Default 30 s. */
  readonly timeoutMs?: number;
}

/** One case. */
export interface ContractCase {
  readonly name: string;
  /** Why it says nothing about this harness in this sandbox; null = run it. */
  readonly skipReason: string | null;
  /** Throws when the contract is broken, and when the case is to be skipped. */
  readonly run: () => Promise<void>;
}

const key = "sk-gimbal-contract-0123456789abcdef";

/**
 * The cases. Skipped ones are to be reported as skipped:
 *
 * @example
 * for (const { name, run, skipReason } of harnessContract(options)) it.skipIf(skipReason !== null)(name, run);
 */
export function harnessContract(options: HarnessContractOptions): readonly ContractCase[] {
  const { runShell, sandbox } = options;
  const always = casesFor(options).map((one) => ({ ...one, skipReason: null }));
  return [
    ...always,
    {
      name: "is killed at the wall clock together with the tools it started",
      skipReason: runShell === null ? "this harness has no shell" : null,
      run: () => isKilledWithTools(options, runShell),
    },
    {
      name: "sends byte-equal first requests from two instances at level namespace",
      skipReason: sandbox.level === "namespace" ? null : `the sandbox is at level ${sandbox.level}`,
      run: () => sendsEqualRequests(options),
    },
  ];
}

function casesFor(options: HarnessContractOptions): readonly Omit<ContractCase, "skipReason">[] {
  return [
    {
      name: "launches purely, with the key in the environment only",
      run: async () => launchIsPure(options.harness),
    },
    {
      name: "does its work through the base URL with the session's key, in its own HOME",
      run: () => doesItsWork(options),
    },
    {
      name: "reports a server failure as failed, whatever its exit code says",
      run: () => reportsFailure(options, 500, "server_error"),
    },
    {
      name: "stops when the gateway says stop",
      run: () => reportsFailure(options, 400, "invalid_request_error"),
    },
    {
      name: "is killed at the wall clock while it waits, and drops its connection",
      run: () => isKilledWaiting(options),
    },
    {
      name: "reads any output without throwing, and nonsense as failed",
      run: async () => readsAnything(options.harness),
    },
  ];
}

function launchIsPure(harness: Harness): void {
  const spec: HarnessRunSpec = {
    ...taskSpec("http://127.0.0.1:1/v1"),
    homeDir: "/home/agent",
    workspaceDir: "/workspace",
    budgets: {},
  };
  const launch = harness.launch(spec);
  assert.deepEqual(launch, harness.launch(spec));
  assert.ok(launch.argv.length > 0, "argv is empty");
  const { env, ...visible } = launch;
  assert.ok(!JSON.stringify(visible).includes(key), "the key is outside the environment");
  assert.ok(Object.values(env).includes(key), "the key is not in the environment");
}

async function doesItsWork(options: HarnessContractOptions): Promise<void> {
  const script = [options.writeFile("made.txt", "by the harness\n"), finalTurn];
  await using server = await startScriptedServer(script);
  await using instance = await createInstance(options.sandbox);
  const { outcome, exit, failureClass } = await run(options, server, instance);
  assert.deepEqual(
    { status: outcome.status, failureClass, finalText: outcome.finalText },
    { status: "completed", failureClass: "none", finalText: "all done" },
    exit.stderr,
  );
  assert.ok(outcome.toolCalls >= 1, "no tool call was counted");
  assert.deepEqual({ ...(await instance.diff()).changed }, { "made.txt": "by the harness\n" });
  for (const request of server.requests) {
    assert.ok(request.authorization.includes(key), `request without the key: ${request.path}`);
    assert.ok(!request.body.includes(key), "the key is in a request body");
  }
  assert.ok(!exit.stdout.includes(key), "the key was printed");
}

async function reportsFailure(
  options: HarnessContractOptions,
  status: number,
  type: string,
): Promise<void> {
  const body = { error: { message: "contract says no", type, code: type, param: null } };
  await using server = await startScriptedServer([{ type: "status", status, body }]);
  await using instance = await createInstance(options.sandbox);
  const { outcome, failureClass } = await run(options, server, instance);
  assert.equal(outcome.status, "failed");
  assert.equal(failureClass, "harness-crash");
  assert.ok(outcome.errorText, "no error text");
  const allowed = status === 400 ? 1 : 12;
  assert.ok(server.requests.length <= allowed, `${server.requests.length} requests`);
}

async function isKilledWaiting(options: HarnessContractOptions): Promise<void> {
  await using server = await startScriptedServer([{ type: "silence" }]);
  await using instance = await createInstance(options.sandbox);
  const { failureClass, exit } = await run(options, server, instance, 4_000);
  assert.equal(exit.endedBy, "timeout");
  assert.equal(failureClass, "wall-clock");
  assert.ok(server.requests.length > 0, "it never asked within 4 s");
  await until(() => server.abandoned() > 0);
}

async function isKilledWithTools(
  options: HarnessContractOptions,
  runShell: HarnessContractOptions["runShell"],
): Promise<void> {
  assert.ok(runShell, "this harness has no shell");
  const loop = "while :; do echo x >> beat; sleep 0.05; done";
  await using server = await startScriptedServer([runShell(`${loop} & ${loop}`)]);
  await using instance = await createInstance(options.sandbox);
  const { exit } = await run(options, server, instance, 4_000);
  assert.equal(exit.endedBy, "timeout");
  const first = (await instance.diff()).changed.beat;
  assert.ok(first, "the tool never ran");
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal((await instance.diff()).changed.beat, first, "a tool outlived its harness");
}

function readsAnything(harness: Harness): void {
  const samples = ["", "\n\n", "{", "null\n", "[]\n[1]\n", '{"type":"agent_end"}\n', "\u2028{}\0"];
  for (const stdout of samples) {
    const outcome = harness.readOutcome({ exitCode: 1, stdout, stderr: "boom" });
    assert.equal(outcome.status, "failed", JSON.stringify(stdout));
  }
}

async function sendsEqualRequests(options: HarnessContractOptions): Promise<void> {
  assert.equal(options.sandbox.level, "namespace");
  await using server = await startScriptedServer([finalTurn]);
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await using instance = await createInstance(options.sandbox);
    await run(options, server, instance);
  }
  const [first, second] = server.requests;
  assert.ok(first && second, "fewer than two requests");
  assert.equal(first.body, second.body);
}

const finalTurn: ScriptedTurn = { type: "text", text: "all done" };

function taskSpec(url: string): Omit<HarnessRunSpec, "homeDir" | "workspaceDir" | "budgets"> {
  return {
    instruction: "Do what the contract asks.",
    model: "scripted-model",
    baseUrls: { openai: url, anthropic: url.replace(/\/v1$/, ""), google: url },
    key,
    contextTokens: 16_384,
    maxOutputTokens: 1_024,
  };
}

function createInstance(sandbox: Sandbox): ReturnType<Sandbox["create"]> {
  return sandbox.create({ files: { "readme.txt": "x\n" }, homeFiles: {}, readOnlyPaths: [] });
}

function run(
  options: HarnessContractOptions,
  server: ScriptedServer,
  sandboxInstance: Awaited<ReturnType<Sandbox["create"]>>,
  wallClockMs: number = options.timeoutMs ?? 30_000,
): Promise<HarnessRun> {
  return runHarness({
    harness: options.harness,
    sandboxInstance,
    spec: taskSpec(server.url),
    budgets: { wallClockMs },
    signal: new AbortController().signal,
  });
}

async function until(condition: () => boolean): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.fail("the condition did not come true within 2 s");
}
