import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { GimbalError, type SandboxCommand, type SandboxInstance } from "@gimbal-rl/core";
import { afterEach, describe, expect, it } from "vitest";
import { createSandbox, type SandboxOptions } from "./create-sandbox.js";
import { detectNamespaces } from "./detect-namespaces.js";

const never = new AbortController().signal;

function reasonAgainst(tool: "bubblewrap" | "unshare"): string | null {
  const support = detectNamespaces(tool);
  return support.tool === null ? support.reason : null;
}
const open: SandboxInstance[] = [];
afterEach(async () => {
  for (const instance of open.splice(0)) await instance[Symbol.asyncDispose]();
});

async function make(options: SandboxOptions, files: Record<string, string> = {}) {
  const instance = await createSandbox(options).create({
    files,
    homeFiles: { ".config/tool": "settings" },
    readOnlyPaths: [],
  });
  open.push(instance);
  return instance;
}

function shell(script: string, more: Partial<SandboxCommand> = {}): SandboxCommand {
  return {
    argv: ["/bin/sh", "-c", script],
    env: {},
    timeoutMs: 10_000,
    maxOutputBytes: 100_000,
    ...more,
  };
}

const variants: readonly { name: string; options: SandboxOptions; missing: string | null }[] = [
  { name: "process", options: { level: "process" }, missing: null },
  {
    name: "namespace with bubblewrap",
    options: { level: "namespace", tool: "bubblewrap" },
    missing: reasonAgainst("bubblewrap"),
  },
  {
    name: "namespace with unshare",
    options: { level: "namespace", tool: "unshare" },
    missing: reasonAgainst("unshare"),
  },
];

for (const { name, options, missing } of variants) {
  describe.skipIf(missing !== null)(
    `level ${name}${missing === null ? "" : ` (skipped: ${missing})`}`,
    () => {
      it("runs a command in the workspace with its own HOME and a clean environment", async () => {
        const instance = await make(options, { "src/a.txt": "hello\n" });
        const exit = await instance.run(
          shell(
            'pwd; cat src/a.txt "$HOME/.config/tool"; echo; echo "$EXTRA"; env | sort | cut -d= -f1',
          ),
          never,
        );
        expect(exit.stderr).toBe("");
        expect(exit.endedBy).toBe("exit");
        expect(exit.exitCode).toBe(0);
        const [cwd, text, config, , ...names] = exit.stdout.trim().split("\n");
        expect(cwd).toBe(instance.workspaceDir);
        expect([text, config]).toEqual(["hello", "settings"]);
        for (const variable of names) {
          expect([
            "GIMBAL_SANDBOX",
            "HOME",
            "LANG",
            "PATH",
            "PWD",
            "SHELL",
            "TMPDIR",
            "TZ",
            "USER",
            "OLDPWD",
            "SHLVL",
            "_",
          ]).toContain(variable);
        }
      });

      it("reports exit codes, stderr and a missing program", async () => {
        const instance = await make(options);
        const failing = await instance.run(shell("echo oops >&2; exit 3"), never);
        expect([failing.exitCode, failing.stderr]).toEqual([3, "oops\n"]);
        const missingProgram = await instance.run(
          { ...shell(""), argv: ["no-such-program"] },
          never,
        );
        expect(missingProgram.exitCode).toBe(127);
      });

      it("measures the CPU time of the tree", async () => {
        const instance = await make(options);
        const loop = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        const exit = await instance.run(shell(`sh -c '${loop}'`), never);
        expect(exit.cpuMs).toBeGreaterThan(20);
        expect(exit.cpuMs).toBeLessThan(exit.wallMs * 1.5 + 30);
      });

      it("carries the diff and nothing else", async () => {
        const instance = await make(options, {
          "keep.txt": "k",
          "edit.txt": "old",
          "gone/x.txt": "x",
        });
        await instance.run(
          shell(
            "printf new > edit.txt; rm -r gone; mkdir -p deep/er; printf made > deep/er/new.txt; mkdir empty",
          ),
          never,
        );
        const diff = await instance.diff();
        expect({ ...diff.changed }).toEqual({
          "edit.txt": "new",
          "gone/x.txt": null,
          "deep/er/new.txt": "made",
        });
        expect(diff.refused).toEqual([]);
      });

      it("ends an endless loop at the wall clock, with its CPU time", async () => {
        const instance = await make(options);
        const exit = await instance.run(
          shell("trap '' TERM INT HUP; while :; do :; done", { timeoutMs: 300 }),
          never,
        );
        expect(exit.endedBy).toBe("timeout");
        expect(exit.exitCode).toBeNull();
        expect(exit.wallMs).toBeLessThan(9_000);
        expect(exit.cpuMs).toBeGreaterThanOrEqual(10);
      });

      it("cuts a flood of output at the limit and keeps the first part", async () => {
        const instance = await make(options);
        const exit = await instance.run(
          shell("echo first; head -c 1000000000 /dev/zero", { maxOutputBytes: 50_000 }),
          never,
        );
        expect(exit.endedBy).toBe("output-limit");
        expect(exit.outputBytes).toBe(50_000);
        expect(exit.stdout.startsWith("first\n")).toBe(true);
        expect(exit.wallMs).toBeLessThan(9_000);
      });

      it("stops when the signal is aborted, before and during the run", async () => {
        const instance = await make(options);
        const early = await instance.run(shell("echo no"), AbortSignal.abort());
        expect([early.endedBy, early.stdout]).toEqual(["aborted", ""]);
        const controller = new AbortController();
        const exit = await instance.run(
          shell("echo ready; exec sleep 30", { onStdout: () => controller.abort() }),
          controller.signal,
        );
        expect(exit.endedBy).toBe("aborted");
        expect(exit.stdout).toBe("ready\n");
      });

      it("kills children that outlive the main process, also in their own session", async () => {
        const instance = await make(options);
        const exit = await instance.run(
          shell(
            "(setsid sh -c 'while :; do date > beat; sleep 0.02; done' >/dev/null 2>&1 &) ; sleep 0.15; ls beat",
          ),
          never,
        );
        expect(exit.stdout).toBe("beat\n");
        // A second run sees whether the file still changes.
        const watch = await instance.run(shell("rm -f beat; sleep 0.2; ls"), never);
        expect(watch.stdout).toBe("");
      });

      it("does not wait for a child that keeps the pipes open", async () => {
        const instance = await make(options);
        const exit = await instance.run(shell("setsid sleep 30 & echo out"), never);
        expect(exit.stdout).toBe("out\n");
        expect(exit.endedBy).toBe("exit");
        expect(exit.wallMs).toBeLessThan(9_000);
      });

      it("removes everything on disposal, also without permissions, and kills what runs", async () => {
        const instance = await make(options);
        await instance.run(shell("mkdir -p a/b; echo x > a/b/c; chmod 000 a/b/c a/b a"), never);
        const running = instance.run(shell("sleep 30"), never);
        await instance[Symbol.asyncDispose]();
        expect((await running).endedBy).toBe("aborted");
        await expect(instance.run(shell("true"), never)).rejects.toMatchObject({
          code: "sandbox-failed",
        });
      });
    },
  );
}

describe.skipIf(reasonAgainst("bubblewrap") !== null && reasonAgainst("unshare") !== null)(
  "read-only mounts at level namespace",
  () => {
    it("appear at their inside path, deep or nested, can be used and not written", async () => {
      const host = mkdtempSync(join(tmpdir(), "mounts-"));
      mkdirSync(join(host, "outer", "inner"), { recursive: true });
      writeFileSync(join(host, "outer", "inner", "file"), "covered\n");
      writeFileSync(join(host, "over"), "on top\n");
      for (const tool of ["bubblewrap", "unshare"] as const) {
        if (reasonAgainst(tool) !== null) continue;
        const instance = await make({ level: "namespace", tool });
        const exit = await instance.run(
          shell(
            `/opt/deep/bin/node -p 'require("crypto").randomBytes(1).length'; cat /opt/tool/inner/file ${host}/over; echo x > /opt/tool/new || echo refused`,
            {
              readOnlyPaths: [join(host, "over")],
              readOnlyMounts: [
                { hostPath: process.execPath, insidePath: "/opt/deep/bin/node" },
                { hostPath: join(host, "over"), insidePath: "/opt/tool/inner/file" },
                { hostPath: join(host, "outer"), insidePath: "/opt/tool" },
              ],
            },
          ),
          never,
        );
        expect(exit.stdout, exit.stderr).toBe("1\non top\non top\nrefused\n");
      }
      rmSync(host, { recursive: true });
    });

    it("are refused when they do not exist or would cover what the sandbox owns", async () => {
      const instance = await make({ level: "namespace" });
      for (const insidePath of ["/", "/tmp", "/workspace", "relative", "/a/../b"]) {
        const readOnlyMounts = [{ hostPath: "/usr", insidePath }];
        await expect(instance.run(shell("true", { readOnlyMounts }), never)).rejects.toMatchObject({
          code: "config-invalid",
        });
      }
      await expect(
        instance.run(shell("true", { readOnlyPaths: ["/no/such/folder"] }), never),
      ).rejects.toThrow("/no/such/folder");
    });
  },
);

describe("createSandbox", () => {
  it("refuses unsafe initial paths and fixed mounts at level process", async () => {
    const sandbox = createSandbox({ level: "process" });
    const spec = { files: { "../x": "" }, homeFiles: {}, readOnlyPaths: [] };
    await expect(sandbox.create(spec)).rejects.toMatchObject({ code: "invalid-request" });
    const instance = await make({ level: "process" });
    const mounts = [{ hostPath: "/usr", insidePath: "/opt/x" }];
    await expect(
      instance.run(shell("true", { readOnlyMounts: mounts }), never),
    ).rejects.toMatchObject({ code: "config-invalid" });
  });

  it("names what is missing when the root folder does not exist", async () => {
    const sandbox = createSandbox({ level: "process", root: "/nonexistent-root" });
    const failure = sandbox.create({ files: {}, homeFiles: {}, readOnlyPaths: [] });
    await expect(failure).rejects.toSatisfy(
      (error) => GimbalError.is(error) && error.code === "sandbox-failed",
    );
  });
});
