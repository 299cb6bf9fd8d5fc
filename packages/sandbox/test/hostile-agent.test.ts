/**
 * An agent that attacks its sandbox at level `namespace` (design.md 1.7), for each tool that makes namespaces here.
 */
import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxInstance } from "@gimbal-rl/core";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { detectNamespaces } from "../src/detect-namespaces.js";
import { createSandbox } from "../src/index.js";

const never = new AbortController().signal;

function reasonAgainst(tool: "bubblewrap" | "unshare"): string | null {
  const support = detectNamespaces(tool);
  return support.tool === null ? support.reason : null;
}

/** Processes of the whole machine, all namespaces included, whose command line holds a text. */
function hostProcessesNaming(text: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(join("/proc", pid, "cmdline"), "utf8").includes(text);
    } catch {
      return false; // It ended between the two reads.
    }
  });
}

for (const tool of ["bubblewrap", "unshare"] as const) {
  const missing = reasonAgainst(tool);
  describe.skipIf(missing !== null)(
    `a hostile agent under ${tool}${missing === null ? "" : ` (skipped: ${missing})`}`,
    () => {
      /** The folder that holds everything a host would have: other attempts, a run, a HOME. */
      let host = "";
      const open: SandboxInstance[] = [];
      beforeEach(() => {
        host = mkdtempSync(join(tmpdir(), "hostile-"));
        mkdirSync(join(host, "run"));
        writeFileSync(join(host, "run", "gimbal.db"), "run-database-secret");
        writeFileSync(join(host, "run", "hidden.test.js"), "hidden-test-secret");
      });
      afterEach(async () => {
        for (const instance of open.splice(0)) await instance[Symbol.asyncDispose]();
        rmSync(host, { recursive: true, force: true });
      });

      async function create(
        files: Record<string, string> = {},
        processes = 200,
      ): Promise<SandboxInstance> {
        const sandbox = createSandbox({
          level: "namespace",
          tool,
          root: host,
          limits: { processes },
        });
        const instance = await sandbox.create({ files, homeFiles: {}, readOnlyPaths: [] });
        open.push(instance);
        return instance;
      }

      function attack(
        instance: SandboxInstance,
        script: string,
        more: { timeoutMs?: number; maxOutputBytes?: number; env?: Record<string, string> } = {},
      ) {
        const command = {
          argv: ["/bin/bash", "-c", script],
          env: {},
          timeoutMs: 20_000,
          maxOutputBytes: 200_000,
          ...more,
        };
        return instance.run(command, never);
      }

      it("sees nothing of another attempt: HOME, workspace, environment, processes", async () => {
        const other = await create({ "work.txt": "other-workspace-secret" });
        await other.writeHomeFile("note", "other-home-secret");
        let ready = (): void => undefined;
        const started = new Promise<void>((resolve) => {
          ready = resolve;
        });
        const running = other.run(
          {
            argv: ["/bin/sh", "-c", "echo up; sleep 20"],
            env: { KEY: "sk-gimbal-other-secret" },
            timeoutMs: 20_000,
            maxOutputBytes: 1_000,
            onStdout: () => ready(),
          },
          never,
        );
        await started;
        const instance = await create();
        const exit = await attack(
          instance,
          `ls -la / /home /home/* /tmp ${host} ${tmpdir()} /root /work 2>&1
           cat /proc/*/environ /proc/*/cmdline 2>&1 | tr '\\0' '\\n'
           grep -rIs "other-[a-z]*-secret" /home /workspace /tmp /etc /dev/shm && echo "FOU""ND"
           ls /proc | grep -c '^[0-9]'`,
        );
        expect(exit.stdout).not.toMatch(/other-(home|workspace)-secret|FOUND|sk-gimbal/);
        expect(exit.stdout).not.toContain("sleep");
        expect(Number(exit.stdout.trim().split("\n").at(-1))).toBeLessThan(10);
        await other[Symbol.asyncDispose]();
        await running;
      });

      it("does not reach the tests, the run database, or the user's own files", async () => {
        const instance = await create();
        const exit = await attack(
          instance,
          `cat ${host}/run/gimbal.db ${host}/run/hidden.test.js /etc/shadow /root/.bashrc
           cat /proc/1/root${host}/run/gimbal.db /proc/self/root${host}/run/gimbal.db
           find / -xdev \\( -name gimbal.db -o -name hidden.test.js \\) -not -path '/proc/*'`,
        );
        expect(exit.stdout).toBe("");
      });

      it("cannot write outside its workspace, HOME and temporary folders", async () => {
        const instance = await create();
        const exit = await attack(
          instance,
          `for place in / /usr /usr/bin /etc /home /bin .. /workspace/.. ${host} /proc/sys/kernel /dev; do
             if (echo x > "$place/planted-by-agent") 2>/dev/null; then echo "WROTE $place"; fi
           done
           echo ok > "$HOME/mine" && echo ok > /tmp/mine && cat "$HOME/mine" /tmp/mine`,
        );
        expect(exit.stdout.replace("WROTE /dev\n", "")).toBe("ok\nok\n");
        expect(() => readFileSync("/planted-by-agent")).toThrow();
        expect(() => readFileSync("/usr/planted-by-agent")).toThrow();
      });

      it("cannot undo its mounts, with or without a user namespace of its own", async () => {
        const instance = await create();
        const exit = await attack(
          instance,
          `export PATH=/usr/sbin:/sbin:$PATH
           umount /workspace && echo UNDONE; umount -l /usr && echo UNDONE
           mount -o remount,rw,bind /usr && echo UNDONE
           unshare -Urm sh -c 'umount /workspace || mount -o remount,rw,bind /usr' && echo UNDONE
           unshare -Urm sh -c 'mkdir -p /tmp/r && mount --bind / /tmp/r && ls /tmp/r${host}/run' && echo UNDONE
           chroot / true && echo UNDONE; true`,
        );
        expect(exit.stdout).toBe("");
        expect(exit.exitCode).toBe(0);
      });

      it("cannot signal processes of the host", async () => {
        const instance = await create();
        const exit = await attack(
          instance,
          `kill -0 ${process.pid} && echo ALIVE; kill -9 -1; sleep 0.2; echo done`,
        );
        expect(exit.stdout).not.toContain("ALIVE");
      });

      it("carries nothing out of the workspace through links", async () => {
        const instance = await create({ "a.txt": "a", "dir/b.txt": "b" });
        await attack(
          instance,
          `ln -sf ${host}/run/gimbal.db a.txt; rm -r dir; ln -s ${host}/run dir; ln -s /etc/passwd p; mkfifo pipe
           ln -s . loop; mkdir -p deep && ln -s ../../../../../../.. deep/up`,
        );
        const diff = await instance.diff();
        expect({ ...diff.changed }).toEqual({ "a.txt": null, "dir/b.txt": null });
        expect(diff.refused.map(({ path }) => path)).toEqual([
          "a.txt",
          "dir",
          "loop",
          "p",
          "pipe",
          "deep/up",
        ]);
        // A later write of ours goes to a file of ours, not through the agent's link.
        await attack(instance, `ln -s ${host}/run/gimbal.db "$HOME/config"`);
        await instance.writeHomeFile("config", "ours");
        expect(readFileSync(join(host, "run", "gimbal.db"), "utf8")).toBe("run-database-secret");
      });

      it("leaves no child behind, whatever it detaches from", async () => {
        const instance = await create();
        const beat = `beat-${randomUUID()}`;
        const running = attack(
          instance,
          `(trap '' HUP TERM; setsid env -i /bin/bash -c 'while :; do echo x >> /workspace/${beat}; sleep 0.02; done' \\
             </dev/null >/dev/null 2>&1 &) ; until [ -s ${beat} ]; do sleep 0.01; done`,
        );
        await vi.waitFor(() => expect(hostProcessesNaming(beat)).not.toEqual([]));
        await running;
        expect((await instance.diff()).changed[beat]).toMatch(/^x/);
        await vi.waitFor(() => expect(hostProcessesNaming(beat)).toEqual([]));
      });

      it("is cut at its output limit when it prints a gigabyte, in little memory", async () => {
        const instance = await create();
        const before = process.memoryUsage().rss;
        const exit = await attack(instance, "yes gigabyte | head -c 1000000000", {
          maxOutputBytes: 1_000_000,
        });
        expect(exit.endedBy).toBe("output-limit");
        expect(exit.outputBytes).toBe(1_000_000);
        expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
      });

      it("is ended at the wall clock in an endless loop, and so is a fork bomb", async () => {
        const instance = await create({}, 40);
        const loop = await attack(instance, "while :; do :; done", { timeoutMs: 300 });
        expect([loop.endedBy, loop.exitCode]).toEqual(["timeout", null]);
        const bomb = await attack(instance, "bomb() { bomb | bomb & }; bomb; sleep 5", {
          timeoutMs: 700,
        });
        expect(["timeout", "output-limit"]).toContain(bomb.endedBy);
        expect(bomb.wallMs).toBeLessThan(4_900);
      });

      it("cannot start more processes than its limit", async () => {
        const instance = await create({}, 30);
        const exit = await attack(
          instance,
          "for i in $(seq 60); do sleep 5 & done 2>/dev/null; jobs -p | wc -l",
          {
            timeoutMs: 1_500,
          },
        );
        // Bash waits and retries when it may not fork: either it gave up early or it never got through.
        const count = Number(exit.stdout.trim() || "0");
        expect(exit.endedBy === "timeout" || count < 60).toBe(true);
        const survivors = await attack(instance, "echo fine");
        expect(survivors.stdout).toBe("fine\n");
      });

      it("sees the same paths, user and host name as every other attempt", async () => {
        const look =
          'echo "$HOME $PWD $(id -un) $(id -u) $(hostname) $TMPDIR"; env | sort; cat /etc/passwd /etc/hosts';
        const outputs: string[] = [];
        for (let attempt = 0; attempt < 2; attempt += 1) {
          const exit = await attack(await create(), look);
          outputs.push(exit.stdout);
        }
        expect(outputs[0]).toBe(outputs[1]);
        expect(outputs[0]?.split("\n")[0]).toBe("/home/agent /workspace agent 1000 sandbox /tmp");
      });
    },
  );
}
