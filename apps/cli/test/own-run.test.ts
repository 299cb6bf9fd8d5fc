/** `train`, `rollout` and `eval` with a model and a harness of one's own, as a user starts them. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { CapturedCall } from "@gimbal-rl/core";
import { openStore } from "@gimbal-rl/store";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createModelFolder, gimbal } from "./support.js";

const harness = fileURLToPath(new URL("echo-harness.ts", import.meta.url));
let folder = "";
let modelDir = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "gimbal-cli-"));
  modelDir = await createModelFolder(join(folder, "Qwen3-small"));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** Model names of all captured calls. */
async function modelsOf(runDir: string): Promise<string[]> {
  const store = await openStore(runDir);
  const models = new Set<string>();
  for await (const { data } of store.read({ kind: "call-end" })) {
    models.add((data as CapturedCall).model);
  }
  await store.close();
  return [...models];
}

test("a run is named after its model, says its coverage at the end, and is resumed without --harness", async () => {
  const runDir = join(folder, "run");
  const made = await gimbal(
    ...["train", "--run", runDir, "--model", modelDir, "--harness", harness],
    ...["--steps", "1", "--groups", "1", "--group-size", "2", "--threads", "1"],
    ...["--heldout", "1", "--heldout-family", "0", "--sandbox", "process"],
  );
  expect(made.stderr).not.toContain("gimbal: ");
  expect(made.exitCode).toBe(0);
  expect(made.stdout).toMatch(/^coverage 1\.0000 \((\d+) of \1 sampled tokens\)$/m);
  expect(made.stdout).toMatch(/^discarded tokens 0$/m);
  const page = await readFile(join(runDir, "report.html"), "utf8");
  expect(page).toContain("<td>left out of training, tokens by reason</td><td>none</td>");
  expect(page).toContain("tokens</td><td>0: none</td>");

  const path = join(runDir, "run.json");
  const manifest = JSON.parse(await readFile(path, "utf8"));
  expect(manifest).toMatchObject({
    model: "Qwen3-small",
    harness: { id: "echo", module: harness },
  });
  expect(Object.keys(manifest.harness)).toEqual(["id", "version", "module"]);
  expect(await modelsOf(runDir)).toEqual(["Qwen3-small"]);

  const resumed = await gimbal("train", "--resume", runDir, "--json");
  expect(resumed.exitCode, resumed.stderr).toBe(0);
  expect(JSON.parse(resumed.stdout)).toMatchObject({ harness: "echo", steps: 1, leftOut: [] });

  // A run of before this field, and one that another variant of the backend made.
  const { module: _, ...older } = manifest.harness;
  await writeFile(path, JSON.stringify({ ...manifest, harness: older }));
  const unknown = await gimbal("train", "--resume", runDir);
  expect(unknown).toMatchObject({ exitCode: 2 });
  expect(unknown.stderr).toMatch(/Unknown harness "echo"/);
  const facts = { ...manifest.config.facts, backend: "wasm (scalar)" };
  await writeFile(path, JSON.stringify({ ...manifest, config: { ...manifest.config, facts } }));
  const other = await gimbal("train", "--resume", runDir);
  expect(other).toMatchObject({ exitCode: 1, stdout: "" });
  expect(other.stderr).toMatch(/made with the backend wasm \(scalar\); .* offers wasm \(simd\)/);
}, 60_000);

test.each([
  ["rollout", "--tasks", "1", "--samples", "2"],
  ["eval", "--tasks", "1", "--samples", "2"],
])(
  "%s keeps its calls under the model's name",
  async (name, ...argv) => {
    const runDir = join(folder, name);
    const options = ["--model", modelDir, "--harness", harness, "--sandbox", "process"];
    const { exitCode, stderr, stdout } = await gimbal(
      ...[name, "--run", runDir, "--json", ...options, ...argv],
    );
    expect(exitCode, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ harness: "echo", runDir });
    expect(stderr).toContain("Attempts");
    expect(await modelsOf(runDir)).toEqual(["Qwen3-small"]);
  },
  60_000,
);

test("train takes tasks of one's own: the example of docs/task-files.md trains, another one is evaluated", async () => {
  const page = await readFile(new URL("../../../docs/task-files.md", import.meta.url), "utf8");
  const example = JSON.parse(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? "") as object;
  const files = ["train.jsonl", "heldout.jsonl"].map((name) => join(folder, name));
  const [trainFile = "", heldoutFile = ""] = files;
  await writeFile(trainFile, `${JSON.stringify(example)}\n`);
  await writeFile(heldoutFile, `${JSON.stringify({ ...example, taskId: "mine/greeting-2" })}\n`);
  const own = ["--model", modelDir, "--harness", harness, "--sandbox", "process", "--threads", "1"];
  const size = ["--steps", "1", "--groups", "1", "--group-size", "2"];
  const train = (run: string, heldout: string) =>
    gimbal(
      ...["train", "--run", join(folder, run), ...own, ...size],
      ...["--task-file", trainFile, "--heldout-file", heldout],
    );
  const made = await train("own-tasks", heldoutFile);
  expect(made.exitCode, made.stderr).toBe(0);
  // The harness of this test does nothing, so both attempts fail alike.
  expect(made.stdout).toMatch(/^held-out tasks, trained families +1 +0\.0 %/m);
  expect(made.stdout).toMatch(/Nothing was learned/);

  const same = await train("same-tasks", trainFile);
  expect(same).toMatchObject({ exitCode: 2, stdout: "" });
  expect(same.stderr).toMatch(/mine\/greeting-1 is in both files/);
}, 60_000);
