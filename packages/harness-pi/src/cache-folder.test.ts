import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defaultCacheDir, installAtomically } from "./cache-folder.js";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "cache-"));
});
afterEach(() => rmSync(root, { recursive: true }));
const signal = new AbortController().signal;

describe("installAtomically", () => {
  it("installs once when several ask at the same time", async () => {
    const target = join(root, "harness", "pi-1");
    let fills = 0;
    const fill = async (folder: string): Promise<void> => {
      fills += 1;
      await writeFile(join(folder, "half"), "1");
      expect(existsSync(target)).toBe(false);
      await writeFile(join(folder, "done"), "2");
    };
    await Promise.all([1, 2, 3].map(() => installAtomically(target, signal, fill)));
    expect(fills).toBe(1);
    expect(readFileSync(join(target, "done"), "utf8")).toBe("2");
    expect(readdirSync(join(root, "harness"))).toEqual(["pi-1"]);
  });

  it("leaves nothing behind when filling fails, so that the next try starts afresh", async () => {
    const target = join(root, "pi-1");
    const failing = installAtomically(target, signal, () =>
      Promise.reject(new Error("no network")),
    );
    await expect(failing).rejects.toThrow("no network");
    expect(readdirSync(root)).toEqual([]);
    await installAtomically(target, signal, (folder) => writeFile(join(folder, "ok"), ""));
    expect(existsSync(join(target, "ok"))).toBe(true);
  });

  it("takes over a lock whose owner is gone, and waits for one that lives", async () => {
    const target = join(root, "pi-1");
    mkdirSync(`${target}.lock`);
    writeFileSync(join(`${target}.lock`, "pid"), "999999999");
    await installAtomically(target, signal, async () => undefined);
    expect(existsSync(target)).toBe(true);
    const other = join(root, "pi-2");
    mkdirSync(`${other}.lock`);
    writeFileSync(join(`${other}.lock`, "pid"), String(process.pid));
    const controller = new AbortController();
    const waiting = installAtomically(other, controller.signal, async () => undefined);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: "aborted" });
    expect(existsSync(other)).toBe(false);
  });

  it("is stopped while it waits for a lock", async () => {
    const target = join(root, "pi-1");
    mkdirSync(`${target}.lock`);
    writeFileSync(join(`${target}.lock`, "pid"), String(process.pid));
    const stop = new AbortController();
    const waiting = installAtomically(target, stop.signal, async () => undefined);
    while (readdirSync(root).length < 2) await new Promise(setImmediate);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ code: "aborted" });
    expect(readdirSync(root)).toEqual(["pi-1.lock"]);
  });

  it("takes a stale lock over once, however many find it", async () => {
    const target = join(root, "pi-1");
    mkdirSync(`${target}.lock`);
    writeFileSync(join(`${target}.lock`, "pid"), "999999999");
    const fill = (folder: string): Promise<void> => writeFile(join(folder, "done"), "");
    await Promise.all(Array.from({ length: 8 }, () => installAtomically(target, signal, fill)));
    expect(readdirSync(target)).toEqual(["done"]);
    expect(readdirSync(root)).toEqual(["pi-1"]);
  });

  it("keeps the install that was complete first, and the lock of another owner", async () => {
    const target = join(root, "pi-1");
    await installAtomically(target, signal, async (folder) => {
      await writeFile(join(folder, "late"), "");
      mkdirSync(target);
      writeFileSync(join(target, "first"), "");
      writeFileSync(join(`${target}.lock`, "pid"), "1 another");
    });
    expect(readdirSync(target)).toEqual(["first"]);
    expect(readdirSync(root)).toEqual(["pi-1", "pi-1.lock"]);
  });

  it("names the folder it cannot write to", async () => {
    writeFileSync(join(root, "file"), "");
    const target = join(root, "file", "pi");
    const failing = installAtomically(target, signal, async () => undefined);
    await expect(failing).rejects.toMatchObject({ code: "harness-missing" });
    await expect(failing).rejects.toThrow(join(root, "file"));
  });

  it("is below GIMBAL_CACHE_DIR when that is set", () => {
    expect(defaultCacheDir({ GIMBAL_CACHE_DIR: "/c" })).toBe("/c");
    expect(defaultCacheDir({})).toMatch(/\.cache\/gimbal$/);
  });
});
