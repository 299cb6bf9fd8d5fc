/**
 * What `gimbal doctor` looks at. Each check says what was found, what it means and what to do.
 */
import { constants } from "node:fs";
import { access, mkdir, mkdtemp, rm, statfs, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createReferenceBackend, createWasmBackend, loadPolicy } from "@gimbal-rl/compute";
import { GimbalError, throwIfAborted } from "@gimbal-rl/core";
import { tinyHarness, tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { createPiHarness, defaultCacheDir } from "@gimbal-rl/harness-pi";
import { loadRendererFromFolder } from "@gimbal-rl/renderers/node";
import { detectNamespaces } from "@gimbal-rl/sandbox";
import { openStore } from "@gimbal-rl/store";

/** The outcome of one check. `broken` makes the doctor fail; `missing` has a next step and does not. */
export interface CheckResult {
  readonly name: string;
  readonly status: "ok" | "info" | "missing" | "broken";
  readonly found: string;
  /** What to do; null when nothing. */
  readonly next: string | null;
}

/** Where the checks look. */
export interface DoctorContext {
  readonly cwd: string;
  readonly signal: AbortSignal;
}

type Found = Omit<CheckResult, "name">;

/** Below this a demo may not fit: installs, checkpoints and blobs. */
const lowDiskBytes = 2 * 1024 ** 3;

const ok = (found: string): Found => ({ status: "ok", found, next: null });
const info = (found: string): Found => ({ status: "info", found, next: null });

function textOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/\s+/g, " ");
}

function checkNode(): Found {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const found = `${process.version} (${process.platform} ${process.arch}, ${availableParallelism()} CPUs)`;
  if (major > 20 || (major === 20 && minor >= 19)) return ok(found);
  return { status: "broken", found, next: "Install Node 20.19 or newer." };
}

async function checkPi(signal: AbortSignal): Promise<Found> {
  const cacheDir = defaultCacheDir();
  try {
    await createPiHarness({ version: tinyHarness.version }).prepare({ install: false, signal });
    return ok(
      `${tinyHarness.version} in ${join(cacheDir, "harness", `pi-${tinyHarness.version}`)}`,
    );
  } catch (error) {
    if (!GimbalError.is(error)) throw error;
    const isMissing = error.code === "harness-missing";
    return {
      status: isMissing ? "missing" : "broken",
      found: isMissing ? `${tinyHarness.version} is not installed in ${cacheDir}` : textOf(error),
      next: isMissing
        ? "Run: gimbal doctor --install pi (gimbal demo installs it too)."
        : "Remove that folder and run: gimbal doctor --install pi",
    };
  }
}

function checkSandbox(): Found {
  const support = detectNamespaces();
  if (support.tool !== null) {
    return ok(
      `level namespace through ${support.tool}: own mount and process namespaces; an attempt sees its workspace, its HOME and read-only system files, not other attempts, the tests or the run; the network stays reachable`,
    );
  }
  return {
    status: "missing",
    found: `level process only (${support.reason}): own HOME, process group and limits, but NO protection against a hostile agent of the same user, which can read your files, other attempts and the tests`,
    next: "Install bubblewrap (for example: apt-get install bubblewrap), or run on Linux with user namespaces.",
  };
}

async function checkWasm(): Promise<Found> {
  const threads = Math.min(2, availableParallelism());
  try {
    await using backend = await createWasmBackend({ threads });
    const { threads: got, variant } = backend.info;
    return ok(`${variant} kernels, ${got} of ${availableParallelism()} threads tried`);
  } catch (error) {
    return {
      status: "broken",
      found: textOf(error),
      next: "Use Node 20.19 or newer on x64 or arm64, without --jitless.",
    };
  }
}

async function checkPolicy(): Promise<Found> {
  try {
    await loadRendererFromFolder(tinyModelDir);
    await using backend = createReferenceBackend();
    await using policy = await loadPolicy(tinyModelDir, backend);
    const { layers, maxPositions, vocabularySize } = policy.config;
    return ok(
      `${tinyModelDir} (${layers} layers, vocabulary ${vocabularySize}, context ${maxPositions}, made with Pi ${tinyHarness.version})`,
    );
  } catch (error) {
    return {
      status: "broken",
      found: textOf(error),
      next: "Reinstall @gimbal-rl/gimbal-tiny, or in a clone run: pnpm tiny:build",
    };
  }
}

async function checkStore(): Promise<Found> {
  const folder = await mkdtemp(join(tmpdir(), "gimbal-doctor-"));
  try {
    const store = await openStore(folder);
    await store.append("doctor", "1", {});
    await store.close();
    return ok("SQLite works");
  } catch (error) {
    return {
      status: "broken",
      found: textOf(error),
      next: "Reinstall dependencies, so that libsql's binary for this platform is there.",
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function checkCache(): Promise<Found> {
  const folder = defaultCacheDir();
  const probe = join(folder, `.doctor-${process.pid}`);
  try {
    await mkdir(folder, { recursive: true });
    await writeFile(probe, "");
    await rm(probe);
    return ok(folder);
  } catch (error) {
    return {
      status: "broken",
      found: `${folder} cannot be written (${textOf(error)})`,
      next: "Set GIMBAL_CACHE_DIR to a folder you may write to.",
    };
  }
}

/** The nearest folder that exists, at or above a path. */
async function existingParent(path: string): Promise<string> {
  try {
    await access(path);
    return path;
  } catch {
    const parent = dirname(path);
    return parent === path ? path : existingParent(parent);
  }
}

async function checkRuns(cwd: string): Promise<Found> {
  const runs = join(cwd, "runs");
  try {
    await access(await existingParent(runs), constants.W_OK | constants.X_OK);
    return ok(runs);
  } catch {
    return {
      status: "missing",
      found: `${runs} cannot be written`,
      next: "Start commands in another folder, or name one with --run.",
    };
  }
}

async function checkDisk(cwd: string): Promise<Found> {
  const { bavail, bsize } = await statfs(cwd);
  const freeBytes = bavail * bsize;
  const found = `${(freeBytes / 1024 ** 3).toFixed(1)} GiB free at ${cwd}`;
  if (freeBytes >= lowDiskBytes) return ok(found);
  return { status: "missing", found, next: "Free some space; a demo needs about 2 GiB." };
}

/** Runs every check; one that throws is broken. */
export async function runChecks({ cwd, signal }: DoctorContext): Promise<CheckResult[]> {
  const checks: readonly (readonly [name: string, check: () => Found | Promise<Found>])[] = [
    ["node", checkNode],
    ["harness pi", () => checkPi(signal)],
    ["sandbox", checkSandbox],
    ["backend reference", () => info("always there: plain and slow, the specification")],
    ["backend wasm", checkWasm],
    ["backend webgpu", () => info("not part of this version")],
    ["backend cuda", () => info("not part of this version")],
    ["policy gimbal-tiny", checkPolicy],
    ["database", checkStore],
    ["cache folder", checkCache],
    ["run folder", () => checkRuns(cwd)],
    ["disk", () => checkDisk(cwd)],
  ];
  const results: CheckResult[] = [];
  for (const [name, check] of checks) {
    throwIfAborted(signal);
    try {
      results.push({ name, ...(await check()) });
    } catch (error) {
      throwIfAborted(signal);
      const next = "Run again with GIMBAL_DEBUG=1 and report it.";
      results.push({ name, status: "broken", found: textOf(error), next });
    }
  }
  return results;
}
