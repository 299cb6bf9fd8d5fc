/**
 * Node's compile cache for Pi, filled once and then mounted read-only.
 *
 * Laws: it is filled by a run that no agent takes part in (a scripted server answers), because code from it is executed
 * in every later attempt; failing to fill it costs time, never correctness.
 */
import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { attributeError, type Sandbox } from "@gimbal-rl/core";
import { type ScriptedTurn, startScriptedServer } from "@gimbal-rl/harness/test";
import { makeReadable } from "./cache-folder.js";
import { launchPi, type PiInstall, type PiLaunchOptions } from "./launch.js";
import { readPiOutcome } from "./read-outcome.js";
import type { PiRelease } from "./versions.js";

/** What a warm-up needs. */
export interface WarmUpRequest {
  readonly release: PiRelease;
  readonly launchOptions: PiLaunchOptions;
  readonly install: PiInstall;
  readonly cacheDir: string;
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
}

/** Pi writes and reads files and runs a command in its warm-up, so that those paths are compiled too. */
const script: readonly ScriptedTurn[] = [
  { type: "tool", name: "bash", arguments: { command: "ls" } },
  { type: "tool", name: "read", arguments: { path: "a.txt" } },
  {
    type: "tool",
    name: "edit",
    arguments: { path: "a.txt", edits: [{ oldText: "one", newText: "two" }] },
  },
  { type: "tool", name: "write", arguments: { path: "b.txt", content: "b\n" } },
  { type: "text", text: "done" },
];

const warmUpTimeoutMs = 60_000;
const maxCacheBytes = 67_108_864;

/**
 * Fills the cache for this release, level and Node unless it is there.
 *
 * @returns Its host folder, or null when it could not be filled.
 * @throws {GimbalError} `aborted`.
 */
export async function warmCompileCache(request: WarmUpRequest): Promise<string | null> {
  const target = join(request.cacheDir, "compile-cache", cacheName(request));
  if (existsSync(target)) return target;
  const temporary = `${target}.${randomUUID().slice(0, 8)}.tmp`;
  try {
    const archive = await compileInSandbox(request);
    await mkdir(temporary, { recursive: true });
    await unpack(archive, temporary);
    await makeReadable(temporary);
    await rename(temporary, target);
    return target;
  } catch (error) {
    if (request.signal.aborted) throw attributeError(error, "aborted", "harness", "Warm-up");
    // Another process may have been first, and a read-only cache folder is no reason to fail.
    return existsSync(target) ? target : null;
  } finally {
    await rm(temporary, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Everything that makes compiled code differ; Node itself checks its version, flags and user below this folder. */
function cacheName({ release, launchOptions, install, sandbox }: WarmUpRequest): string {
  const parts = [install.installDir, install.nodePath, process.version, process.getuid?.() ?? 0];
  const key = JSON.stringify([...parts, launchOptions.nodeOptions]);
  const hash = createHash("sha256").update(key).digest("hex").slice(0, 12);
  return `pi-${release.version}-${sandbox.level}-${hash}`;
}

/** One scripted Pi run; the cache it wrote comes back as a tar archive. */
async function compileInSandbox(request: WarmUpRequest): Promise<Buffer> {
  const { sandbox, release, launchOptions, install, signal } = request;
  await using server = await startScriptedServer(script);
  await using instance = await sandbox.create({
    files: { "a.txt": "one\n" },
    homeFiles: {},
    readOnlyPaths: [],
  });
  const launch = launchPi(release, launchOptions, install, {
    instruction: "Warm up.",
    model: "scripted",
    baseUrls: { openai: server.url, anthropic: server.url, google: server.url },
    key: "sk-gimbal-warm-up",
    homeDir: instance.homeDir,
    workspaceDir: instance.workspaceDir,
    contextTokens: 16_384,
    maxOutputTokens: 1_024,
    budgets: {},
    sandboxLevel: instance.level,
  });
  for (const [path, text] of Object.entries(launch.homeFiles)) {
    await instance.writeHomeFile(path, text);
  }
  const folder = `${instance.homeDir}/compile-cache`;
  const { NODE_DISABLE_COMPILE_CACHE: _, ...env } = launch.env;
  const run = await instance.run(
    {
      argv: launch.argv,
      env: { ...env, NODE_COMPILE_CACHE: folder },
      timeoutMs: warmUpTimeoutMs,
      maxOutputBytes: maxCacheBytes,
      readOnlyMounts: launch.readOnlyMounts ?? [],
    },
    signal,
  );
  const outcome = readPiOutcome(run);
  if (outcome.status === "failed") throw new Error(`the warm-up failed: ${outcome.errorText}`);
  const packed = await instance.run(
    {
      argv: ["/bin/sh", "-c", 'tar -C "$1" -cf - . | base64', "sh", folder],
      env: {},
      timeoutMs: warmUpTimeoutMs,
      maxOutputBytes: maxCacheBytes,
    },
    signal,
  );
  if (packed.exitCode !== 0 || packed.stdout === "") throw new Error("the cache came back empty");
  return Buffer.from(packed.stdout, "base64");
}

async function unpack(archive: Buffer, folder: string): Promise<void> {
  const child = spawn("tar", ["-C", folder, "--no-same-owner", "-xf", "-"], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.stdin.on("error", () => undefined);
  child.stdin.end(archive);
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`tar ended with ${code}`);
}
