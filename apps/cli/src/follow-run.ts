/**
 * Runs what a run folder holds to its end, shown as it goes: what `demo` and `train` do after they made or opened it.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Harness, Sandbox } from "@gimbal-rl/core";
import type { RunConfig } from "@gimbal-rl/run";
import { continueGrpoRun } from "@gimbal-rl/sdk";
import type { Output } from "./output.js";
import { createRunProgress, summaryText } from "./run-progress.js";

/** A run folder with what continues it. */
export interface OpenRun {
  readonly runDir: string;
  readonly sandbox: Sandbox;
  /** Prepared. */
  readonly harness: Harness;
  readonly modelDir: string;
  readonly config: RunConfig;
}

/** Continues the run, prints its summary, and says how to go on when it is stopped. */
export async function followRun(run: OpenRun, output: Output, signal: AbortSignal): Promise<void> {
  const { config, runDir, sandbox } = run;
  const report = join(runDir, "report.html");
  output.line(`Run folder ${runDir}; sandbox level ${sandbox.level}.`);
  if (existsSync(report)) output.line("This run was finished before; its report is made again.");
  try {
    const onEvent = createRunProgress(output, config);
    const summary = await continueGrpoRun({ ...run, onEvent }, signal);
    output.text(`\n${summaryText(summary)}\nReport: ${report}`);
    output.json(summary);
  } catch (error) {
    if (signal.aborted) {
      output.line(`What is finished is kept. Continue with: gimbal train --resume ${runDir}`);
    }
    throw error;
  }
}
