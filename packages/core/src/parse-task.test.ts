import { describe, expect, it } from "vitest";
import { parseTask } from "./parse-task.js";

const task = {
  taskId: "t",
  suite: "s",
  family: "f",
  split: "pivot",
  instruction: "Do it.",
  files: { "a.txt": "" },
  protectedPaths: [".git/"],
  gradingFiles: { "test.js": "x" },
  verifier: { kind: "file-state-equals", options: { files: {} } },
  budgets: { maxCalls: 3, wallClockMs: 1000 },
};

describe("parseTask", () => {
  it("gives a task back as it is", () => {
    expect(parseTask(task)).toEqual(task);
  });

  const wrong: readonly (readonly [string, Record<string, unknown>])[] = [
    ["taskId", { taskId: "" }],
    ["suite", { suite: 1 }],
    ["family", { family: undefined }],
    ["split", { split: "toString" }],
    ["instruction", { instruction: null }],
    ["files", { files: ["a"] }],
    ['files["a.txt"]', { files: { "a.txt": 7 } }],
    ["protectedPaths", { protectedPaths: ".git/" }],
    ["protectedPaths[1]", { protectedPaths: ["a", null] }],
    ["gradingFiles", { gradingFiles: undefined }],
    ['gradingFiles["b"]', { gradingFiles: { b: null } }],
    ["verifier", { verifier: "all" }],
    ["verifier.kind", { verifier: { options: {} } }],
    ["verifier.options", { verifier: { kind: "all" } }],
    ["verifier.option", { verifier: { kind: "all", options: {}, option: {} } }],
    ["budgets", { budgets: undefined }],
    ["budgets.maxCalls", { budgets: { maxCalls: "3" } }],
    ["budgets.wallClockMs", { budgets: { wallClockMs: 0 } }],
    ["budgets.maxcalls", { budgets: { maxcalls: 3 } }],
    ["protectedpaths", { protectedpaths: [] }],
  ];
  for (const [field, change] of wrong) {
    it(`names ${field} when it is wrong`, () => {
      expect(() => parseTask({ ...task, ...change })).toThrow(
        expect.objectContaining({ code: "config-invalid", details: { field } }),
      );
    });
  }

  it("refuses what is no object", () => {
    for (const value of [null, [], "x", 1]) expect(() => parseTask(value)).toThrow("an object");
  });
});
