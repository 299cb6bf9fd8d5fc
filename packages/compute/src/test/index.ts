export { backendSuite } from "./backend-suite.js";
export type { ContractCase } from "./checks.js";
export { policySuite } from "./policy-suite.js";
export { type Tolerance, tolerancesF32 } from "./tolerances.js";
export { trainingDigest } from "./training-cases.js";
export { type BuiltTrie, buildTrie } from "./trie-tools.js";
