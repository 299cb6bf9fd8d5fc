/** The `gimbal` command as a function, for tests and for programs that embed it. */
export { type CommandEntry, type CommandModule, commandList } from "./command-list.js";
export {
  type CliContext,
  type ContextOptions,
  createContext,
  type OwnedContext,
} from "./context.js";
export { type CliFailure, describeFailure, usageError } from "./errors.js";
export { formatTable, type Output } from "./output.js";
export type { ProgressBar, TextSink } from "./progress.js";
export { type RunCliOptions, runCli } from "./run-cli.js";
