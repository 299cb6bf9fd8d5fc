/** The real Pi, prepared once in the sandbox it will run in. */
import { GimbalError, type Harness, type Sandbox } from "@gimbal-rl/core";
import { tinyHarness } from "@gimbal-rl/gimbal-tiny";
import { createPiHarness } from "@gimbal-rl/harness-pi";

/** The harness, or the reason why Pi cannot be installed here. Any other failure is thrown. */
export async function preparePi(sandbox: Sandbox): Promise<Harness | string> {
  const harness = createPiHarness({ version: tinyHarness.version, warmUpIn: sandbox });
  try {
    await harness.prepare({ install: true, signal: new AbortController().signal });
    return harness;
  } catch (error) {
    if (GimbalError.is(error) && error.code === "harness-missing") return error.message;
    throw error;
  }
}
