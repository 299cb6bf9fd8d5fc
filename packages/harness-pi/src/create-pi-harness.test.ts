import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { HarnessRunSpec } from "@gimbal-rl/core";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createPiHarness, type PiHarnessOptions } from "./create-pi-harness.js";
import { isNodeAtLeast, resolveNode } from "./node-runtime.js";
import { findRelease, type PiVersion } from "./versions.js";

let cacheDir = "";
beforeEach(() => {
  cacheDir = mkdtempSync(join(tmpdir(), "pi-cache-"));
});
afterEach(() => rmSync(cacheDir, { recursive: true }));
const signal = new AbortController().signal;

/** Puts a package that looks like Pi into the cache. */
function plant(version: PiVersion, packageVersion: string): void {
  const folder = join(
    cacheDir,
    "harness",
    `pi-${version}`,
    "node_modules/@earendil-works/pi-coding-agent",
  );
  mkdirSync(join(folder, "dist/bundle"), { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ version: packageVersion }));
  writeFileSync(join(folder, "dist/bundle/cli.js"), "");
  writeFileSync(join(folder, "dist/cli.js"), "");
}

async function prepared(options: Partial<PiHarnessOptions> = {}) {
  const version = options.version ?? "1.6.0";
  plant(version, version);
  const harness = createPiHarness({ version, cacheDir, nodePath: process.execPath, ...options });
  await harness.prepare({ install: false, signal });
  return harness;
}

const spec: HarnessRunSpec = {
  instruction: "Fix it.",
  model: "tiny",
  baseUrls: { openai: "http://127.0.0.1:1/v1", anthropic: "", google: "" },
  key: "sk-gimbal-secret",
  homeDir: "/home/agent",
  workspaceDir: "/workspace",
  contextTokens: 16_384,
  maxOutputTokens: 512,
  budgets: {},
};

describe("createPiHarness", () => {
  it("says what is missing and which command installs it", async () => {
    const harness = createPiHarness({ version: "1.6.0", cacheDir, nodePath: process.execPath });
    const missing = harness.prepare({ install: false, signal });
    await expect(missing).rejects.toMatchObject({ code: "harness-missing" });
    await expect(missing).rejects.toThrow("gimbal doctor --install pi");
    expect(() => harness.launch(spec)).toThrow("prepare");
  });

  it("refuses another version than the one asked for, and an incomplete package", async () => {
    plant("1.6.0", "1.5.9");
    const harness = createPiHarness({ version: "1.6.0", cacheDir, nodePath: process.execPath });
    const mismatch = harness.prepare({ install: true, signal });
    await expect(mismatch).rejects.toMatchObject({ code: "harness-version-mismatch" });
    await expect(mismatch).rejects.toThrow("found 1.5.9");
    expect(() => createPiHarness({ version: "9.9.9" as PiVersion })).toThrow("1.6.0 or 0.74.2");
  });

  it("writes the key reference of each version, and tells the model's sizes truthfully", async () => {
    for (const [version, reference] of [
      ["1.6.0", "$GIMBAL_KEY"],
      ["0.74.2", "GIMBAL_KEY"],
    ] as const) {
      const { homeFiles, env } = (await prepared({ version })).launch(spec);
      const models = JSON.parse(homeFiles[".pi/agent/models.json"] ?? "");
      expect(models.providers.gimbal).toMatchObject({
        apiKey: reference,
        baseUrl: "http://127.0.0.1:1/v1",
        models: [{ id: "tiny", contextWindow: 16_384, maxTokens: 512 }],
      });
      expect(env).toMatchObject({ GIMBAL_KEY: spec.key, PI_OFFLINE: "1", PI_TELEMETRY: "0" });
      const settings = JSON.parse(homeFiles[".pi/agent/settings.json"] ?? "");
      expect(settings.compaction).toEqual({ enabled: false });
    }
  });

  it("uses fixed paths at level namespace and host paths at level process", async () => {
    const harness = await prepared();
    const inside = harness.launch({ ...spec, sandboxLevel: "namespace" });
    expect(inside.argv[0]).toBe("/opt/node/bin/node");
    expect(JSON.stringify([inside.argv, inside.env, inside.homeFiles])).not.toContain(cacheDir);
    expect(inside.readOnlyMounts?.map(({ insidePath }) => insidePath)).toEqual([
      "/opt/pi",
      "/opt/node/bin/node",
    ]);
    const outside = harness.launch({ ...spec, sandboxLevel: "process" });
    expect(outside.argv[0]).toBe(process.execPath);
    // The agent's own `node check.js` finds that Node, wherever the host keeps it.
    expect(inside.env.PATH?.split(":")[0]).toBe("/opt/node/bin");
    expect(outside.env.PATH?.split(":")[0]).toBe(dirname(process.execPath));
    expect(outside.readOnlyMounts).toBeUndefined();
  });

  it("passes options on, and keeps an instruction from being read as one", async () => {
    const options = { compaction: true, tools: ["read", "bash"], thinking: "low" } as const;
    const { argv, homeFiles } = (await prepared(options)).launch({
      ...spec,
      instruction: "--help me",
    });
    expect(argv.slice(-2)).toEqual(["--", "--help me"]);
    expect(argv.join(" ")).toContain("--thinking low --tools read,bash");
    expect(JSON.parse(homeFiles[".pi/agent/settings.json"] ?? "").compaction.enabled).toBe(true);
    const attach = (await prepared()).launch({ ...spec, instruction: "@all read this" });
    expect(attach.argv.at(-1)).toBe(" @all read this");
    const old = (await prepared({ version: "0.74.2" })).launch({ ...spec, instruction: "-x" });
    expect(old.argv.at(-1)).toBe(" -x");
    const long = { ...spec, instruction: "x".repeat(130_000) };
    const harness = await prepared();
    expect(() => harness.launch(long)).toThrow("130000 bytes");
  });
});

describe("resolveNode", () => {
  const request = (version: string, more = {}) => ({
    release: findRelease("1.6.0"),
    nodePath: undefined,
    cacheDir,
    install: false,
    signal,
    current: { version, execPath: "/usr/bin/node" },
    ...more,
  });

  it("takes the given Node, else the running one when it is new enough", async () => {
    expect(await resolveNode(request("v20.0.0", { nodePath: "/my/node" }))).toBe("/my/node");
    expect(await resolveNode(request("v22.19.0"))).toBe("/usr/bin/node");
    expect(await resolveNode(request("v24.1.0"))).toBe("/usr/bin/node");
    const missing = resolveNode(request("v22.18.9"));
    await expect(missing).rejects.toThrow("needs Node >= 22.19, this is v22.18.9");
  });

  it("compares versions by number", () => {
    expect(isNodeAtLeast("v22.9.0", [22, 19])).toBe(false);
    expect(isNodeAtLeast("v20.6.0", [20, 6])).toBe(true);
    expect(isNodeAtLeast("v100.0.0", [22, 19])).toBe(true);
  });
});
