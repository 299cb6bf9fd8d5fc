/**
 * The real Pi, from the cache folder. Installs it on first use; without a registry the cases are skipped with a reason.
 */
import { GimbalError, type Harness } from "@gimbal-rl/core";
import { runHarness } from "@gimbal-rl/harness";
import { harnessContract, type ScriptedTurn, startScriptedServer } from "@gimbal-rl/harness/test";
import { createSandbox } from "@gimbal-rl/sandbox";
import { describe, expect, it } from "vitest";
import { createPiHarness, type PiVersion } from "../src/index.js";

const sandbox = createSandbox({ level: "auto" });
const signal = new AbortController().signal;

/** Prepared, or the reason why not. */
async function prepare(version: PiVersion): Promise<Harness | string> {
  const harness = createPiHarness({ version, warmUpIn: sandbox });
  try {
    await harness.prepare({ install: true, signal });
    return harness;
  } catch (error) {
    if (GimbalError.is(error) && error.code === "harness-missing") return error.message;
    throw error;
  }
}

const tool = (name: string, args: unknown): ScriptedTurn => ({
  type: "tool",
  name,
  arguments: args,
});

// The older version only where asked for: it is a second 195 MiB install.
const versions: readonly PiVersion[] =
  process.env.GIMBAL_TEST_PI_OLD === "1" ? ["1.6.0", "0.74.2"] : ["1.6.0"];

for (const version of versions) {
  const harness = await prepare(version);
  const ready = typeof harness !== "string";
  describe.skipIf(!ready)(`Pi ${version} ${ready ? `at level ${sandbox.level}` : harness}`, () => {
    if (typeof harness === "string") {
      it.skip(harness);
      return;
    }
    const cases = harnessContract({
      harness,
      sandbox,
      writeFile: (path, text) => tool("write", { path, content: text }),
      runShell: (command) => tool("bash", { command }),
    });
    for (const { name, run, skipReason } of cases) {
      if (skipReason !== null) it.skip(`${name} (${skipReason})`);
      else it(name, { timeout: 60_000 }, run);
    }

    it("walks five tool turns and says what it cost", { timeout: 60_000 }, async () => {
      const edits = [{ oldText: "hello", newText: "bye" }];
      await using server = await startScriptedServer([
        tool("bash", { command: "ls" }),
        tool("read", { path: "a.txt" }),
        tool("edit", { path: "a.txt", edits }),
        tool("write", { path: "b.txt", content: "x\n" }),
        tool("bash", { command: "node check.js > checked.txt; cat a.txt b.txt no-such-file" }),
        { type: "text", text: "all done" },
      ]);
      await using instance = await sandbox.create({
        files: { "a.txt": "hello\n", "check.js": "console.log(process.execPath)\n" },
        homeFiles: {},
        readOnlyPaths: [],
      });
      const { outcome, exit } = await runHarness({
        harness,
        sandboxInstance: instance,
        spec: {
          instruction: "-- change @a.txt",
          model: "scripted",
          baseUrls: { openai: server.url, anthropic: server.url, google: server.url },
          key: "sk-gimbal-test",
          contextTokens: 16_384,
          maxOutputTokens: 1_024,
        },
        budgets: { wallClockMs: 30_000 },
        signal,
      });
      expect(outcome).toEqual({
        status: "completed",
        finalText: "all done",
        errorText: null,
        toolCalls: 5,
        toolErrors: 1,
        nativeSessionId: expect.any(String),
      });
      expect({ ...(await instance.diff()).changed }).toEqual({
        "a.txt": "bye\n",
        "b.txt": "x\n",
        // The Node that Pi runs on, which need not be on the sandbox's own PATH.
        "checked.txt": expect.stringMatching(
          sandbox.level === "namespace" ? /^\/opt\/node\/bin\/node\n$/ : /^\/.*\/node\n$/,
        ),
      });
      const first = JSON.parse(server.requests[0]?.body ?? "{}");
      expect(JSON.stringify(first.messages.at(-1))).toContain("-- change @a.txt");
      expect(first.messages[0].content).toContain(instance.workspaceDir);
      if (sandbox.level === "namespace") expect(first.messages[0].content).toContain("/opt/pi/");
      expect(exit.cpuMs).toBeGreaterThan(100);
      expect(exit.cpuMs).toBeLessThan(6_000);
      if (process.env.GIMBAL_PRINT_COST === "1")
        process.stderr.write(`cpuMs ${exit.cpuMs} wallMs ${exit.wallMs}\n`);
    });
  });
}
