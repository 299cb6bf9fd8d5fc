/** One chained length check for arrays that must run side by side. */
import { GimbalError } from "@gimbal-rl/core";

/** @throws {GimbalError} `shape-mismatch` naming the arrays when their lengths differ. */
export function assertSameLength(arrays: Readonly<Record<string, ArrayLike<number>>>): void {
  const entries = Object.entries(arrays);
  if (entries.every(([, array]) => array.length === entries[0][1].length)) return;
  const found = entries.map(([name, array]) => `${name} ${array.length}`).join(", ");
  throw new GimbalError("shape-mismatch", `Found lengths ${found}; expected one length for all.`);
}

/** @throws {GimbalError} `shape-mismatch` unless the denominator is a finite number above 0. */
export function assertDenominator(denominator: number): void {
  if (denominator > 0 && Number.isFinite(denominator)) return;
  throw new GimbalError(
    "shape-mismatch",
    `The denominator is ${denominator}; expected a finite number above 0, the sum of the weights of the whole batch.`,
  );
}
