/**
 * Continues a run, telling each event as a JSON line on stdout, and kills itself with SIGKILL where it is told to.
 * Arguments: run folder, model folder, and optionally `<event>=<name>` (`step-end=1`, `phase-end=train`,
 * `attempt-end=train/4` for the fourth of a phase) or `checkpoint=<step>` for the moment when a checkpoint has appeared.
 */
import { mkdirSync, watch, writeSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "@gimbal-rl/run";
import { createSandbox } from "@gimbal-rl/sandbox";
import { continueGrpoRun, readRunFolder } from "@gimbal-rl/sdk";
import { exampleHarness } from "./scribe-run.js";

const [runDir = "", modelDir = "", killAt = ""] = process.argv.slice(2);
const [kind = "", value = ""] = killAt.split("=");
const die = (): void => {
  process.kill(process.pid, "SIGKILL");
};
if (kind === "checkpoint") {
  const folder = join(runDir, "checkpoints");
  mkdirSync(folder, { recursive: true });
  watch(folder, (_, name) => {
    if (name === value) die();
  });
}

function nameOf(event: RunEvent): string {
  if (event.type === "step-end") return String(event.report.step);
  if (event.type === "attempt-end") return `${event.phase}/${event.done}`;
  return event.phase;
}

const { signal } = new AbortController();
const { manifest } = await readRunFolder(runDir);
await exampleHarness.prepare({ install: false, signal });
const summary = await continueGrpoRun(
  {
    runDir,
    harness: exampleHarness,
    sandbox: createSandbox({ level: manifest.sandboxLevel }),
    modelDir,
    onEvent: (event) => {
      // Synchronous, so that a kill does not swallow what was told before it.
      writeSync(1, `${JSON.stringify(event)}\n`);
      if (kind === event.type && value === nameOf(event)) die();
    },
  },
  signal,
);
writeSync(1, `${JSON.stringify({ type: "summary", summary })}\n`);
process.exit(0);
