/**
 * One isolated place: a HOME and a workspace on the host, seen by processes at the paths of its level.
 */
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import {
  attributeError,
  GimbalError,
  type SandboxCommand,
  type SandboxExit,
  type SandboxInstance,
  type SandboxSpec,
  type WorkspaceDiff,
} from "@gimbal-rl/core";
import { bubblewrapCommand } from "./bubblewrap.js";
import type { NamespaceTool } from "./detect-namespaces.js";
import { giveAway, removeTree, writeFileBelow, writeTree } from "./file-tree.js";
import { droppedId, insideHome, insideUser, insideWorkspace, ownEtcFiles } from "./host-view.js";
import { type ProcessLimits, wrapWithLimits } from "./limits.js";
import { type NamespacePlan, planMounts } from "./namespace-plan.js";
import { type Launch, runProcess } from "./run-process.js";
import { unshareCommand } from "./unshare.js";
import { type DiffLimits, readWorkspaceDiff } from "./workspace-diff.js";

/** What a sandbox passes to each of its instances. */
export interface InstanceSettings {
  /** null = level `process`. */
  readonly namespace: NamespaceTool | null;
  readonly root: string;
  readonly scratchBytes: number;
  readonly limits: ProcessLimits;
  readonly diffLimits: DiffLimits;
}

/**
 * Makes the folders and writes the files.
 *
 * @throws {GimbalError} `invalid-request` for an unsafe path, `config-invalid` for a bad read-only path,
 * `sandbox-failed` when the host refuses.
 */
export async function createInstance(
  settings: InstanceSettings,
  spec: SandboxSpec,
): Promise<SandboxInstance> {
  // Refused early: a bad list would otherwise fail at the first run.
  planMounts(spec.readOnlyPaths, []);
  const folder = await mkdtemp(join(settings.root, "gimbal-")).catch((error: unknown) => {
    throw attributeError(error, "sandbox-failed", "sandbox", `Cannot make a sandbox folder`);
  });
  const instance = new LocalInstance(settings, spec, folder);
  try {
    await instance.fill();
    return instance;
  } catch (error) {
    await removeTree(folder);
    throw attributeError(error, "sandbox-failed", "sandbox", "Cannot write the sandbox's files");
  }
}

class LocalInstance implements SandboxInstance {
  readonly level: SandboxInstance["level"];
  readonly homeDir: string;
  readonly workspaceDir: string;
  readonly #settings: InstanceSettings;
  readonly #spec: SandboxSpec;
  readonly #folder: string;
  readonly #homePath: string;
  readonly #workspacePath: string;
  /** The agent's id on the host, when it is not ours. */
  readonly #owner: number | null;
  readonly #marker: string = `GIMBAL_SANDBOX=${randomUUID()}`;
  readonly #running = new Set<Promise<unknown>>();
  readonly #disposal = new AbortController();

  constructor(settings: InstanceSettings, spec: SandboxSpec, folder: string) {
    this.#settings = settings;
    this.#spec = spec;
    this.#folder = folder;
    this.#homePath = join(folder, "home");
    this.#workspacePath = join(folder, "workspace");
    this.#owner = settings.namespace?.mode === "drop" ? droppedId : null;
    this.level = settings.namespace === null ? "process" : "namespace";
    this.homeDir = settings.namespace === null ? this.#homePath : insideHome;
    this.workspaceDir = settings.namespace === null ? this.#workspacePath : insideWorkspace;
  }

  async fill(): Promise<void> {
    for (const name of ["home", "workspace", "tmp", "root", "etc"]) {
      await mkdir(join(this.#folder, name), { mode: 0o755 });
    }
    await writeTree(join(this.#folder, "etc"), ownEtcFiles);
    for (const path of [this.#homePath, this.#workspacePath]) await giveAway(path, this.#owner);
    await writeTree(this.#homePath, this.#spec.homeFiles, this.#owner);
    await writeTree(this.#workspacePath, this.#spec.files, this.#owner);
  }

  async writeHomeFile(relativePath: string, text: string): Promise<void> {
    this.#requireAlive();
    await writeFileBelow(this.#homePath, relativePath, text, this.#owner);
  }

  async run(command: SandboxCommand, signal: AbortSignal): Promise<SandboxExit> {
    this.#requireAlive();
    const launch = this.#launch(command);
    const either = AbortSignal.any([signal, this.#disposal.signal]);
    const exit = runProcess(launch, command, either);
    this.#running.add(exit);
    try {
      return await exit;
    } finally {
      this.#running.delete(exit);
    }
  }

  diff(): Promise<WorkspaceDiff> {
    this.#requireAlive();
    return readWorkspaceDiff(this.#workspacePath, this.#spec.files, this.#settings.diffLimits);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposal.abort();
    await Promise.allSettled(this.#running);
    await removeTree(this.#folder);
  }

  #launch(command: SandboxCommand): Launch {
    const { namespace, limits } = this.#settings;
    const argv = wrapWithLimits(command.argv, limits);
    if (namespace === null) return this.#processLaunch(command, argv);
    const plan: NamespacePlan = {
      homePath: this.#homePath,
      workspacePath: this.#workspacePath,
      rootPath: join(this.#folder, "root"),
      etcMounts: Object.keys(ownEtcFiles).map((name) => ({
        hostPath: join(this.#folder, "etc", name),
        insidePath: `/etc/${name}`,
      })),
      mounts: planMounts(
        [...this.#spec.readOnlyPaths, ...(command.readOnlyPaths ?? [])],
        command.readOnlyMounts ?? [],
      ),
      cwd: command.cwd ?? insideWorkspace,
      env: { ...baseEnvironment(insideHome, "/tmp"), ...command.env },
      scratchBytes: this.#settings.scratchBytes,
    };
    const shared = { env: { PATH: toolPath }, cwd: "/", marker: null };
    if (namespace.tool === "unshare") {
      const outer = unshareCommand(plan, argv, namespace.mode);
      return { ...shared, argv: outer, argumentsText: "" };
    }
    const bubblewrap = bubblewrapCommand(plan, argv, namespace.mode);
    // Through a descriptor: on the command line they would be readable inside, as process 1.
    return {
      ...shared,
      argv: ["bwrap", "--args", "3", "--", ...bubblewrap.command],
      argumentsText: bubblewrap.args.map((argument) => `${argument}\0`).join(""),
    };
  }

  #processLaunch(command: SandboxCommand, argv: readonly string[]): Launch {
    if ((command.readOnlyMounts ?? []).length > 0) {
      throw new GimbalError(
        "config-invalid",
        'Mounts at fixed paths need level "namespace"; at level "process" use the host paths.',
        { boundary: "sandbox" },
      );
    }
    const [name = "", value = ""] = this.#marker.split("=");
    return {
      argv,
      env: {
        ...baseEnvironment(this.#homePath, join(this.#folder, "tmp")),
        ...command.env,
        [name]: value,
      },
      cwd: command.cwd ?? this.#workspacePath,
      argumentsText: "",
      marker: this.#marker,
    };
  }

  #requireAlive(): void {
    if (!this.#disposal.signal.aborted) return;
    throw new GimbalError("sandbox-failed", "This sandbox instance was disposed; create another.", {
      boundary: "sandbox",
    });
  }
}

/** Where the namespace tools themselves are looked up. */
const toolPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

function baseEnvironment(home: string, temporary: string): Record<string, string> {
  return {
    HOME: home,
    TMPDIR: temporary,
    PATH: "/usr/local/bin:/usr/bin:/bin",
    LANG: "C.UTF-8",
    USER: insideUser.name,
    SHELL: "/bin/sh",
    TZ: "UTC",
  };
}
