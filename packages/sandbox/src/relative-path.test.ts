import { join, normalize } from "node:path/posix";
import { GimbalError } from "@gimbal-rl/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSafeRelativePath, requireSafeRelativePath } from "./relative-path.js";

describe("isSafeRelativePath", () => {
  it("accepts ordinary files and refuses every way out", () => {
    for (const path of ["a", "src/a.js", ".git/config", "a b/c", "..a/b..", "__proto__"]) {
      expect(isSafeRelativePath(path), path).toBe(true);
    }
    for (const path of [
      "",
      "/etc/passwd",
      "..",
      "../a",
      "a/../../b",
      "a//b",
      "./a",
      "a/",
      "a\0b",
    ]) {
      expect(isSafeRelativePath(path), path).toBe(false);
    }
  });

  it("keeps every accepted path below its root", () => {
    const part = fc.constantFrom("a", "..", ".", "", "b.c", "...");
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const path = parts.join("/");
        if (!isSafeRelativePath(path)) return;
        expect(normalize(join("/root", path)).startsWith("/root/")).toBe(true);
      }),
    );
  });

  it("names the path in the error", () => {
    let caught: unknown;
    try {
      requireSafeRelativePath("../secret");
    } catch (error) {
      caught = error;
    }
    expect(GimbalError.is(caught) && caught.code).toBe("invalid-request");
    expect(String(caught)).toContain("../secret");
  });
});
