/**
 * The one Pi version that the tiny policy is made with and used with.
 */
import type { Harness, Sandbox, SandboxLevel } from "@gimbal-rl/core";
import { createPiHarness } from "@gimbal-rl/harness-pi";
import { createSandbox } from "@gimbal-rl/sandbox";

/** Prepares Pi (installing it when needed) and a sandbox of the level. */
export async function createPi(
  level: SandboxLevel,
): Promise<{ readonly harness: Harness; readonly sandbox: Sandbox }> {
  const sandbox = createSandbox({ level });
  const harness = createPiHarness({ version: "1.6.0", warmUpIn: sandbox });
  await harness.prepare({ install: true, signal: new AbortController().signal });
  return { harness, sandbox };
}
