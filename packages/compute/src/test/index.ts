export { backendSuite } from "./backend-suite.js";
export type { ContractCase } from "./checks.js";
export { type Tolerance, tolerancesF32 } from "./tolerances.js";
