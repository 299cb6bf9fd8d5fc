import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { buildGradingFiles, isProtectedPath } from "./grading-copy.js";

const task = {
  files: { "src/a.js": "a", "test/t.js": "t", "check.js": "c" },
  protectedPaths: ["test/", "check.js", ".git/"],
  gradingFiles: { "test/hidden.js": "h" },
};

describe("buildGradingFiles", () => {
  it("keeps protected files whatever was done to them, and lists it", () => {
    const diff = {
      changed: {
        "test/t.js": null,
        "check.js": "exit",
        "src/a.js": "b",
        "test/new.js": "n",
        ".git/HEAD": "x",
      },
      refused: [{ path: "test/link.js", reason: "symbolic link" }],
    };
    const { files, tampered } = buildGradingFiles(task, diff);
    expect({ ...files }).toEqual({ ...task.files, "src/a.js": "b", "test/hidden.js": "h" });
    expect(tampered).toEqual([".git/HEAD", "check.js", "test/link.js", "test/new.js", "test/t.js"]);
  });

  it("does not let a file stand where a protected folder is, or a folder where a file is", () => {
    const diff = {
      changed: { "test/t.js": null, test: "file", "check.js": null, "check.js/x": "y" },
      refused: [],
    };
    const { files, tampered } = buildGradingFiles(task, diff);
    expect({ ...files }).toEqual({ ...task.files, "test/hidden.js": "h" });
    expect(tampered).toEqual(["check.js", "check.js/x", "test", "test/t.js"]);
  });

  it("lets a file replace an ordinary folder", () => {
    const diff = { changed: { "src/a.js": null, src: "now a file" }, refused: [] };
    expect({ ...buildGradingFiles(task, diff).files }).toMatchObject({ src: "now a file" });
  });

  it("never changes a protected or a grading file, for any diff", () => {
    const name = fc.constantFrom("src", "test", "check.js", "a.js", "t.js", "hidden.js", ".git");
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
    const changed = fc.dictionary(path, fc.option(fc.string()), {
      maxKeys: 6,
      noNullPrototype: true,
    });
    fc.assert(
      fc.property(changed, (changes) => {
        const { files, tampered } = buildGradingFiles(task, { changed: changes, refused: [] });
        expect(files["test/t.js"]).toBe("t");
        expect(files["check.js"]).toBe("c");
        expect(files["test/hidden.js"]).toBe("h");
        const paths = Object.keys(files);
        for (const a of paths) for (const b of paths) expect(b.startsWith(`${a}/`)).toBe(false);
        for (const entry of Object.keys(changes)) {
          if (isProtectedPath(entry, task.protectedPaths)) expect(tampered).toContain(entry);
        }
      }),
    );
  });
});
