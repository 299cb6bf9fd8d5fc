/**
 * The contract suite of the Backend port: every operation against f64 formulas and finite differences, and the
 * bit-for-bit laws. Every backend must pass it; it needs no test framework.
 */
import type { ContractCase } from "./checks.js";
import { denseCases } from "./dense-cases.js";
import { sequenceCases } from "./sequence-cases.js";

/**
 * Cases for every operation of a Backend.
 * @example
 * for (const { name, run } of backendSuite) it(name, () => run(backend));
 */
export const backendSuite: readonly ContractCase[] = [...denseCases, ...sequenceCases];
