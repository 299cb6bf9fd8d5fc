/** Where a harness runs: process groups and mount namespaces with limits. */
export { createSandbox, type SandboxOptions } from "./create-sandbox.js";
export {
  detectNamespaces,
  type NamespaceSupport,
  type NamespaceTool,
} from "./detect-namespaces.js";
export type { ProcessLimits } from "./limits.js";
export { type DiffLimits, defaultDiffLimits } from "./workspace-diff.js";
