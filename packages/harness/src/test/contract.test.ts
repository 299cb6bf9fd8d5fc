import type { Harness, Sandbox } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { type ContractCase, harnessContract } from "./contract.js";

function casesFor(level: Sandbox["level"], hasShell: boolean): readonly ContractCase[] {
  const turn = { type: "text", text: "" } as const;
  return harnessContract({
    harness: {} as Harness,
    sandbox: { level, create: () => Promise.reject(new Error("not made")) },
    writeFile: () => turn,
    runShell: hasShell ? () => turn : null,
  });
}

describe("harnessContract", () => {
  it("says which cases do not apply, and why, and never passes them", async () => {
    expect(casesFor("namespace", true).every((one) => one.skipReason === null)).toBe(true);
    const skipped = casesFor("process", false).filter((one) => one.skipReason !== null);
    expect(skipped.map((one) => one.skipReason)).toEqual([
      "this harness has no shell",
      "the sandbox is at level process",
    ]);
    for (const { run } of skipped) await expect(run()).rejects.toThrow();
  });
});
