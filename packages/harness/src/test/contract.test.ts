import type { Harness, Sandbox } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { harnessContract } from "./contract.js";

function skipped(level: Sandbox["level"], hasShell: boolean): readonly (string | null)[] {
  const turn = { type: "text", text: "" } as const;
  const cases = harnessContract({
    harness: {} as Harness,
    sandbox: { level, create: () => Promise.reject(new Error("not made")) },
    writeFile: () => turn,
    runShell: hasShell ? () => turn : null,
  });
  return cases.map(({ skipReason }) => skipReason).filter((reason) => reason !== null);
}

describe("harnessContract", () => {
  it("says which cases do not apply, and why", () => {
    expect(skipped("namespace", true)).toEqual([]);
    expect(skipped("process", false)).toEqual([
      "this harness has no shell",
      "the sandbox is at level process",
    ]);
  });

  it("never passes a case that does not apply", async () => {
    const options = {
      harness: {} as Harness,
      sandbox: { level: "process", create: () => Promise.reject(new Error("not made")) },
      writeFile: () => ({ type: "text", text: "" }),
      runShell: null,
    } as const;
    const cases = harnessContract(options).filter(({ skipReason }) => skipReason !== null);
    for (const { run } of cases) await expect(run()).rejects.toThrow();
  });
});
