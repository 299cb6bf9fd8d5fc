/**
 * A user's own harness in a few lines: any program that takes a base URL and a key.
 */
import type { Harness, HarnessLaunch, HarnessOutcome, HarnessRunSpec } from "@gimbal-rl/core";

/** What a user must say about their harness; everything but the command has a default. */
export interface HarnessDefinition {
  readonly id: string;
  /** Default `"0"`. */
  readonly version?: string;
  /** The launch for one run. Only `argv` is required; `env` is added to {@link standardEnvironment}. */
  readonly command: (
    spec: HarnessRunSpec,
  ) => Pick<HarnessLaunch, "argv"> & Partial<Omit<HarnessLaunch, "argv">>;
  /** Default: nothing to prepare. */
  readonly prepare?: Harness["prepare"];
  /** Default {@link readPlainOutcome}. */
  readonly readOutcome?: Harness["readOutcome"];
}

/**
 * Makes a {@link Harness}.
 *
 * @example
 * const harness = defineHarness({ id: "mine", command: () => ({ argv: ["node", "agent.mjs"] }) });
 */
export function defineHarness(definition: HarnessDefinition): Harness {
  return {
    id: definition.id,
    version: definition.version ?? "0",
    prepare: definition.prepare ?? (() => Promise.resolve()),
    launch: (spec) => {
      const launch = definition.command(spec);
      return {
        homeFiles: {},
        readOnlyPaths: [],
        ...launch,
        env: { ...standardEnvironment(spec), ...launch.env },
      };
    },
    readOutcome: definition.readOutcome ?? readPlainOutcome,
  };
}

/** The variables that the vendors' SDKs read, and the task: `GIMBAL_MODEL`, `GIMBAL_INSTRUCTION`. */
export function standardEnvironment(spec: HarnessRunSpec): Record<string, string> {
  return {
    OPENAI_BASE_URL: spec.baseUrls.openai,
    OPENAI_API_KEY: spec.key,
    ANTHROPIC_BASE_URL: spec.baseUrls.anthropic,
    ANTHROPIC_API_KEY: spec.key,
    GOOGLE_GEMINI_BASE_URL: spec.baseUrls.google,
    GEMINI_API_KEY: spec.key,
    GIMBAL_MODEL: spec.model,
    GIMBAL_INSTRUCTION: spec.instruction,
  };
}

/** For programs whose exit code can be trusted: 0 = completed, the last line printed is the final text. */
export function readPlainOutcome(exit: {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}): HarnessOutcome {
  const completed = exit.exitCode === 0;
  return {
    status: completed ? "completed" : "failed",
    finalText: lastLine(exit.stdout),
    errorText: completed ? null : (lastLine(exit.stderr) ?? `exit code ${exit.exitCode}`),
    toolCalls: 0,
    toolErrors: 0,
    nativeSessionId: null,
  };
}

function lastLine(text: string): string | null {
  return text.trimEnd().split("\n").at(-1)?.trim() || null;
}
