/**
 * Numbers as people read them.
 */
import type { LeftOut } from "@gimbal-rl/core";

/** A share as per cent with one decimal; `–` when it is not known. */
export function percent(share: number | null): string {
  return share === null ? "–" : `${(100 * share).toFixed(1)} %`;
}

/** A difference of shares in percentage points, with its sign. */
export function points(difference: number): string {
  return `${difference >= 0 ? "+" : ""}${(100 * difference).toFixed(1)}`;
}

/** `name 3, other 1`; counts of zero are passed over, and nothing at all is `none`. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.map(([name, count]) => `${name} ${count}`).join(", ") || "none";
}

/** How many sampled tokens are trained, and why the others are not. */
export function coverageText(fidelity: {
  readonly coverage: number;
  readonly trainedTokens: number;
  readonly sampledTokens: number;
  readonly leftOut: readonly LeftOut[];
}): string {
  const { coverage, leftOut, sampledTokens, trainedTokens } = fidelity;
  const reasons = leftOut.map(({ reason, tokens }) => `${reason} ${tokens}`).join(", ");
  return `coverage ${sampledTokens === 0 ? "-" : coverage.toFixed(4)} (${trainedTokens} of ${sampledTokens} sampled tokens)${reasons === "" ? "" : `; left out: ${reasons}`}`;
}
