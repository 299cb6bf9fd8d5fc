import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { removeTree, writeTree } from "./file-tree.js";
import { defaultDiffLimits, readWorkspaceDiff } from "./workspace-diff.js";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "diff-"));
});
afterEach(async () => removeTree(root));

describe("readWorkspaceDiff", () => {
  it("never follows links to files or folders, and calls a replaced file gone", async () => {
    writeFileSync(join(root, "a.txt"), "a");
    symlinkSync("/etc/passwd", join(root, "b.txt"));
    symlinkSync("/etc", join(root, "dir"));
    const diff = await readWorkspaceDiff(root, { "a.txt": "a", "b.txt": "b", "dir/passwd": "p" });
    expect({ ...diff.changed }).toEqual({ "b.txt": null, "dir/passwd": null });
    expect(diff.refused).toEqual([
      { path: "b.txt", reason: "symbolic link" },
      { path: "dir", reason: "symbolic link" },
    ]);
  });

  it("does not hang on a named pipe or a socket", async () => {
    execFileSync("mkfifo", [join(root, "pipe")]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(join(root, "sock"), resolve));
    const diff = await readWorkspaceDiff(root, {});
    await new Promise((resolve) => server.close(resolve));
    expect(diff.refused).toEqual([
      { path: "pipe", reason: "named pipe" },
      { path: "sock", reason: "socket" },
    ]);
  });

  it("refuses large files, too much in all, and text that is not UTF-8", async () => {
    writeFileSync(join(root, "big"), "x".repeat(101));
    writeFileSync(join(root, "bytes"), Buffer.from([0xff, 0xfe]));
    writeFileSync(join(root, "one"), "x".repeat(80));
    writeFileSync(join(root, "two"), "y".repeat(80));
    const limits = { ...defaultDiffLimits, maxFileBytes: 100, maxTotalBytes: 100 };
    const diff = await readWorkspaceDiff(root, {}, limits);
    expect(Object.keys(diff.changed)).toEqual(["one"]);
    expect(diff.refused.map((entry) => entry.path)).toEqual(["big", "bytes", "two"]);
  });

  it("says that a file of the task is gone when what became of it cannot be carried", async () => {
    writeFileSync(join(root, "big"), "x".repeat(101));
    writeFileSync(join(root, "bytes"), Buffer.from([0xff, 0xfe]));
    writeFileSync(join(root, "always-big"), "y".repeat(150));
    const limits = { ...defaultDiffLimits, maxFileBytes: 100 };
    const initial = { big: "a", bytes: "b", "always-big": "y".repeat(150) };
    const diff = await readWorkspaceDiff(root, initial, limits);
    expect({ ...diff.changed }).toEqual({ big: null, bytes: null });
    expect(diff.refused.map((entry) => entry.path)).toEqual(["always-big", "big", "bytes"]);
  });

  it("refuses a file name that is not UTF-8 instead of inventing another", async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff])]), "x");
    const diff = await readWorkspaceDiff(root, {});
    expect({ ...diff.changed }).toEqual({});
    expect(diff.refused[0]?.reason).toContain("not UTF-8");
  });

  it("stops after a bounded number of entries and still knows the initial files", async () => {
    mkdirSync(join(root, "a"));
    for (let i = 0; i < 300; i += 1) writeFileSync(join(root, "a", `f${i}`), "x");
    mkdirSync(join(root, "src"));
    writeFileSync(join(root, "src", "kept"), "kept");
    writeFileSync(join(root, "src", "edited"), "new");
    const files = { "src/kept": "kept", "src/edited": "old", "src/gone": "g" };
    const diff = await readWorkspaceDiff(root, files, { ...defaultDiffLimits, maxEntries: 100 });
    expect({ ...diff.changed }).toEqual({ "src/edited": "new", "src/gone": null });
    expect(diff.refused).toContainEqual({ path: "a", reason: "more than 100 files and folders" });
  });

  it("carries a file called __proto__", async () => {
    writeFileSync(join(root, "__proto__"), "text");
    const diff = await readWorkspaceDiff(root, {});
    expect(JSON.stringify(diff.changed)).toBe('{"__proto__":"text"}');
  });

  it("reads files and folders whose permissions were taken away", async () => {
    mkdirSync(join(root, "d"));
    writeFileSync(join(root, "d", "f"), "new");
    execFileSync("chmod", ["000", join(root, "d", "f"), join(root, "d")]);
    const diff = await readWorkspaceDiff(root, { "d/f": "old" });
    expect({ ...diff.changed }).toEqual({ "d/f": "new" });
  });

  it("is empty for any tree as written, and equals any edit made to it", async () => {
    const name = fc.constantFrom("a", "b", "c.txt", "dé");
    const path = fc.tuple(fc.constantFrom("", "x/", "x/y/"), name).map(([dir, file]) => dir + file);
    const tree = fc.dictionary(path, fc.string({ unit: "grapheme" }), {
      maxKeys: 5,
      noNullPrototype: true,
    });
    await fc.assert(
      fc.asyncProperty(tree, tree, async (before, after) => {
        const folder = mkdtempSync(join(root, "case-"));
        await writeTree(folder, before);
        expect({ ...(await readWorkspaceDiff(folder, before)).changed }).toEqual({});
        rmSync(folder, { recursive: true });
        mkdirSync(folder);
        await writeTree(folder, after);
        const expected: Record<string, string | null> = {};
        for (const key of Object.keys(before)) if (!(key in after)) expected[key] = null;
        for (const [key, text] of Object.entries(after))
          if (before[key] !== text) expected[key] = text;
        expect({ ...(await readWorkspaceDiff(folder, before)).changed }).toEqual(expected);
      }),
      { numRuns: 25 },
    );
  });
});

describe("removeTree", () => {
  it("removes a tree nested deeper than a path can name", async () => {
    const deep = join(root, "deep");
    mkdirSync(deep);
    const script =
      "const n='n'.repeat(200);for(let i=0;i<60;i++){require('fs').mkdirSync(n);process.chdir(n)}";
    execFileSync(process.execPath, ["-e", script], { cwd: deep });
    await removeTree(deep);
    expect(execFileSync("ls", ["-A", root]).toString()).toBe("");
  });
});
