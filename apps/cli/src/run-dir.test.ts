import { expect, it } from "vitest";
import { resolveRunDir } from "./run-dir.js";

const context = {
  cwd: "/home/kim/project",
  clock: { nowMs: () => Date.UTC(2026, 10, 30, 22, 5, 7, 123) },
};

it("names a run folder after the command, the seed and the time", () => {
  expect(resolveRunDir(context, "demo", { seed: 3 })).toBe(
    "/home/kim/project/runs/demo-3-2026-11-30T22-05-07",
  );
});

it("takes the folder that was named, relative to where the command was called", () => {
  expect(resolveRunDir(context, "demo", { seed: 3, run: "mine" })).toBe("/home/kim/project/mine");
  expect(resolveRunDir(context, "demo", { seed: 3, run: "/tmp/mine" })).toBe("/tmp/mine");
});
