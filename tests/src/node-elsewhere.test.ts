/**
 * Node as nvm and volta install it: in a folder of the user that no sandbox has on its PATH.
 */
import { chmod, copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  asId,
  type Harness,
  type PolicyVersion,
  type Sandbox,
  type Task,
  type TaskId,
  type Verdict,
} from "@gimbal-rl/core";
import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { createSandbox } from "@gimbal-rl/sandbox";
import { createAttemptStack } from "@gimbal-rl/sdk";
import { createMemoryStore } from "@gimbal-rl/store";
import { createVerifiers } from "@gimbal-rl/verifiers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const task: Task = {
  ...{ taskId: asId<TaskId>("t"), suite: "s", family: "f", split: "train", instruction: "i" },
  ...{ files: {}, protectedPaths: [], budgets: {} },
  gradingFiles: {
    "where.test.mjs": `import assert from "node:assert"; import { test } from "node:test";
      test("runs", () => assert.ok(process.execPath.endsWith("/node")));`,
  },
  verifier: {
    kind: "node-tests-pass",
    options: { files: ["where.test.mjs"], expected: { runs: "pass" } },
  },
};

let root = "";
let nodePath = "";
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "gimbal-home-"));
  // As a HOME is: nobody else may look into it.
  await chmod(root, 0o700);
  const folder = join(root, ".nvm", "versions", "node", "bin");
  await mkdir(folder, { recursive: true });
  nodePath = join(folder, "node");
  await copyFile(process.execPath, nodePath);
});
afterAll(() => rm(root, { recursive: true, force: true }));

function levels(): readonly Sandbox[] {
  const best = createSandbox({ level: "auto" });
  const plain = createSandbox({ level: "process" });
  return best.level === "process" ? [plain] : [plain, best];
}

for (const sandbox of levels()) {
  describe(`grading with a Node outside of the fixed PATH, at level ${sandbox.level}`, () => {
    const verify = async (verifier: Task["verifier"]): Promise<Verdict | undefined> =>
      createVerifiers({ nodePath })
        .get(verifier.kind)
        ?.verify(
          { task: { ...task, verifier }, diff: { changed: {}, refused: [] }, sandbox },
          new AbortController().signal,
        );

    it("runs the tests of a task", async () => {
      const verdict = await verify(task.verifier);
      expect(verdict?.score, JSON.stringify(verdict?.evidence)).toBe(1);
    });

    it("is the node of a task's own check command", async () => {
      const argv = ["node", "-p", "process.execPath"];
      const options = { argv, expectedStdout: nodePath };
      const verdict = await verify({ kind: "command-succeeds", options });
      expect(verdict?.score, JSON.stringify(verdict?.evidence)).toBe(1);
    });
  });
}

describe("the attempt stack", () => {
  it("grades with the Node that it runs on itself", async () => {
    const started: (readonly string[])[] = [];
    const sandbox: Sandbox = {
      level: "process",
      create: async () => ({
        ...{ level: "process", homeDir: "/h", workspaceDir: "/w", writeHomeFile: async () => {} },
        diff: async () => ({ changed: {}, refused: [] }),
        run: async ({ argv }) => {
          started.push(argv);
          throw new Error("far enough");
        },
        [Symbol.asyncDispose]: async () => {},
      }),
    };
    await using stack = await createAttemptStack({
      model: "gimbal-tiny",
      modelDir: tinyModelDir,
      policyVersion: asId<PolicyVersion>("start"),
      harness: { id: "none", version: "1" } as Harness,
      sandbox,
      store: createMemoryStore(),
      seed: 1,
      temperature: 1,
    });
    const verifier = stack.attempts.verifiers.get("node-tests-pass");
    const diff = { changed: {}, refused: [] };
    await verifier?.verify({ task, diff, sandbox }, new AbortController().signal);
    expect(started[0]?.[0]).toBe(process.execPath);
  });
});
