/**
 * The commands. Only the one that is called is loaded, so that `gimbal --help` is instant.
 */
import type { Command } from "commander";
import type { CliContext } from "./context.js";

/** What every `commands/<name>.ts` exports. */
export interface CommandModule {
  /** Adds the command to the program: `program.command(...)` with options, help example and action. */
  register(program: Command, context: CliContext): void;
}

/** A command that can be loaded. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  load(): Promise<CommandModule>;
}

/** All commands in the order of `gimbal --help`. */
export const commandList: readonly CommandEntry[] = [
  {
    name: "demo",
    summary: "Train the bundled tiny policy inside the real Pi and show it getting better",
    load: () => import("./commands/demo.js"),
  },
  {
    name: "proxy",
    summary: "Run the gateway that captures every model call, in front of a local engine",
    load: () => import("./commands/proxy.js"),
  },
  {
    name: "serve",
    summary: "Run an OpenAI-compatible server over a model folder",
    load: () => import("./commands/serve.js"),
  },
  {
    name: "rollout",
    summary: "Run attempts at tasks with a harness and store what was captured",
    load: () => import("./commands/rollout.js"),
  },
  {
    name: "train",
    summary: "Train with GRPO, or resume a run",
    load: () => import("./commands/train.js"),
  },
  {
    name: "eval",
    summary: "Measure pass@k with intervals",
    load: () => import("./commands/eval.js"),
  },
  {
    name: "inspect",
    summary: "Show a stored run: steps, coverage, failures, one attempt turn by turn",
    load: () => import("./commands/inspect.js"),
  },
  {
    name: "validate",
    summary: "Grade everything a run has stored; fails on a fatal finding",
    load: () => import("./commands/validate.js"),
  },
  {
    name: "doctor",
    summary: "Say what this machine has, and what to do about what is missing",
    load: () => import("./commands/doctor.js"),
  },
];
