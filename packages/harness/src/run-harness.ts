/**
 * Runs one harness once inside a sandbox instance, within its budgets, and says how it went.
 *
 * Laws: the key reaches the process through its environment only and is redacted from everything kept; the whole
 * process tree is gone when this resolves; an expected failure of the run is a value, never an exception.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type {
  Budgets,
  FailureClass,
  Harness,
  HarnessLaunch,
  HarnessOutcome,
  HarnessRunSpec,
  SandboxExit,
  SandboxInstance,
} from "@gimbal-rl/core";
import { createLineSplitter } from "./line-splitter.js";

/** The spec without what the runner fills in from the instance. */
export type HarnessTaskSpec = Omit<
  HarnessRunSpec,
  "homeDir" | "workspaceDir" | "sandboxLevel" | "budgets"
>;

/** What the caller can watch. Text is redacted. */
export type HarnessEvent =
  | { readonly type: "harness-start"; readonly argv: readonly string[] }
  | { readonly type: "harness-line"; readonly line: string }
  | { readonly type: "harness-end"; readonly run: HarnessRun };

/** How one run went. */
export interface HarnessRun {
  readonly outcome: HarnessOutcome;
  readonly exit: SandboxExit;
  /** As far as the process shows it. A caller that knows the gateway's budgets refines `harness-crash`. */
  readonly failureClass: FailureClass;
}

/** Options of {@link runHarness}. */
export interface RunHarnessOptions {
  readonly harness: Harness;
  readonly sandboxInstance: SandboxInstance;
  readonly spec: HarnessTaskSpec;
  /** `wallClockMs` is enforced here; call and token budgets by the gateway. Default wall clock: 10 minutes. */
  readonly budgets: Budgets;
  readonly signal: AbortSignal;
  /** Folder for `stdout.log`, `stderr.log` and `run.json`; made when missing. */
  readonly logsDir?: string;
  /** Default 32 MiB. */
  readonly maxOutputBytes?: number;
  readonly onEvent?: (event: HarnessEvent) => void;
}

const defaultWallClockMs = 600_000;
const defaultMaxOutputBytes = 33_554_432;

/**
 * Runs to the end. Call `harness.prepare` once before.
 *
 * @throws {GimbalError} `sandbox-failed`, `config-invalid` when the process could not be started.
 */
export async function runHarness(options: RunHarnessOptions): Promise<HarnessRun> {
  const { harness, sandboxInstance, budgets } = options;
  const launch = harness.launch({
    ...options.spec,
    budgets,
    homeDir: sandboxInstance.homeDir,
    workspaceDir: sandboxInstance.workspaceDir,
    sandboxLevel: sandboxInstance.level,
  });
  const redact = (text: string): string => text.replaceAll(options.spec.key, "[session key]");
  const emit = options.onEvent;
  for (const [path, text] of Object.entries(launch.homeFiles)) {
    await sandboxInstance.writeHomeFile(path, text);
  }
  const argv = launch.argv.map(redact);
  emit?.({ type: "harness-start", argv });
  const lines = createLineSplitter((line) => emit?.({ type: "harness-line", line: redact(line) }));
  const exit = await sandboxInstance.run(
    {
      argv: launch.argv,
      env: launch.env,
      timeoutMs: budgets.wallClockMs ?? defaultWallClockMs,
      maxOutputBytes: options.maxOutputBytes ?? defaultMaxOutputBytes,
      readOnlyPaths: launch.readOnlyPaths,
      readOnlyMounts: launch.readOnlyMounts ?? [],
      ...(emit === undefined ? {} : { onStdout: (chunk: Uint8Array) => lines.push(chunk) }),
    },
    options.signal,
  );
  lines.end();
  const outcome = readOutcome(harness, exit);
  const run = { outcome, exit, failureClass: classifyRun(outcome, exit) };
  if (options.logsDir !== undefined) await keepLogs(options.logsDir, launch, run, redact);
  emit?.({ type: "harness-end", run });
  return run;
}

/** The failure class that the process itself shows. Limits of ours come before the harness's own words. */
export function classifyRun(
  outcome: HarnessOutcome,
  exit: Pick<SandboxExit, "endedBy">,
): FailureClass {
  switch (exit.endedBy) {
    case "timeout":
      return "wall-clock";
    case "output-limit":
      return "output-limit";
    case "aborted":
      return "infrastructure";
    case "exit":
      return outcome.status === "completed" ? "none" : "harness-crash";
    default:
      return exit.endedBy satisfies never;
  }
}

/** An adapter that cannot read its harness's output means a failed run, not a failed training run. */
function readOutcome(harness: Harness, exit: SandboxExit): HarnessOutcome {
  try {
    return harness.readOutcome(exit);
  } catch (error) {
    return {
      status: "failed",
      finalText: null,
      errorText: `The output of ${harness.id} could not be read: ${String(error)}`,
      toolCalls: 0,
      toolErrors: 0,
      nativeSessionId: null,
    };
  }
}

async function keepLogs(
  folder: string,
  launch: HarnessLaunch,
  run: HarnessRun,
  redact: (text: string) => string,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const { stdout, stderr, ...exit } = run.exit;
  const summary = { argv: launch.argv, exit, outcome: run.outcome, failureClass: run.failureClass };
  await writeFile(join(folder, "stdout.log"), redact(stdout));
  await writeFile(join(folder, "stderr.log"), redact(stderr));
  await writeFile(join(folder, "run.json"), `${redact(JSON.stringify(summary, null, 2))}\n`);
}
