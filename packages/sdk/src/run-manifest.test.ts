import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultRunConfig } from "@gimbal-rl/run";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createRunFolder, isRunFolder, type RunManifest, readRunFolder } from "./run-manifest.js";

const manifest: RunManifest = {
  format: 1,
  config: { ...defaultRunConfig, seed: 1, facts: { suite: "test" } },
  harness: { id: "pi", version: "1.6.0" },
  sandboxLevel: "process",
  model: "m",
  threads: 2,
};
const tasks = { train: [], heldout: [], heldoutFamily: [] };
let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gimbal-manifest-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("a run folder", () => {
  it("reads back what it was made from, and leaves no temporary file", async () => {
    const runDir = join(folder, "deep", "run");
    expect(await isRunFolder(runDir)).toBe(false);
    await createRunFolder(runDir, manifest, tasks);
    expect(await isRunFolder(runDir)).toBe(true);
    expect(await readRunFolder(runDir)).toEqual({ manifest, tasks });
    expect((await readdir(runDir)).sort()).toEqual(["run.json", "tasks.json"]);
  });

  it("is never made twice: the error says how to continue", async () => {
    await createRunFolder(folder, manifest, tasks);
    await expect(createRunFolder(folder, manifest, tasks)).rejects.toMatchObject({
      code: "config-invalid",
      message: expect.stringContaining(`gimbal train --resume ${folder}`),
    });
  });

  it("is not made at all from settings that could not be read back", async () => {
    const config = { ...manifest.config, temperature: 0 };
    await expect(createRunFolder(folder, { ...manifest, config }, tasks)).rejects.toMatchObject({
      code: "config-invalid",
      message: expect.stringContaining('"temperature"'),
    });
    expect(await readdir(folder)).toEqual([]);
  });

  it("that is missing, torn or of another format is told apart", async () => {
    await expect(readRunFolder(folder)).rejects.toMatchObject({ code: "not-found" });
    await writeFile(join(folder, "run.json"), '{"format": 1');
    await expect(readRunFolder(folder)).rejects.toMatchObject({ code: "config-invalid" });
    await writeFile(join(folder, "run.json"), JSON.stringify({ ...manifest, format: 2 }));
    await expect(readRunFolder(folder)).rejects.toThrow(/format 1 expected/);
    await writeFile(join(folder, "run.json"), JSON.stringify(manifest));
    await expect(readRunFolder(folder)).rejects.toThrow(/tasks\.json/);
    await writeFile(join(folder, "tasks.json"), JSON.stringify({ ...tasks, heldout: undefined }));
    await expect(readRunFolder(folder)).rejects.toThrow(/no list "heldout"/);
    await writeFile(join(folder, "tasks.json"), JSON.stringify({ ...tasks, train: [{}] }));
    await expect(readRunFolder(folder)).rejects.toThrow(/train\[0\]: Task field taskId is missing/);
  });
});
