/**
 * An interval as text; none where a bootstrap has too few tasks to say anything.
 */

/** Tasks below which a percentile bootstrap over tasks is not shown: of one task it has no width at all. */
const minimumTasks = 5;

/**
 * `low to high`, or `-` for a bootstrap over fewer than 5 tasks.
 * @param format - Writes one end.
 */
export function intervalText(
  { high, low, method = "bootstrap" }: IntervalEnds,
  tasks: number,
  format: (value: number) => string,
): string {
  if (method === "bootstrap" && tasks < minimumTasks) return "-";
  return `${format(low)} to ${format(high)}`;
}

/** The ends of an interval and how it was made. Default: by bootstrap. */
export interface IntervalEnds {
  readonly low: number;
  readonly high: number;
  readonly method?: "bootstrap" | "wilson";
}
