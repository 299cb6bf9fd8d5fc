import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

it("disposing a backend with helper threads at the end of a program lets the program finish", () => {
  const index = new URL("../src/index.ts", import.meta.url).href;
  const program = `
    const { createWasmBackend } = await import(${JSON.stringify(index)});
    const backend = await createWasmBackend({ threads: 2 });
    await backend[Symbol.asyncDispose]();
    process.stdout.write("disposed");`;
  const args = ["--conditions=@gimbal-rl/source", "--import", "tsx", "--input-type=module"];
  const { status, stdout } = spawnSync(process.execPath, [...args, "--eval", program], {
    cwd: fileURLToPath(new URL("../../..", import.meta.url)),
    encoding: "utf8",
    timeout: 60_000,
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "disposed" });
}, 60_000);
