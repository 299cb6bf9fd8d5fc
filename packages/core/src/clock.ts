/**
 * The Clock port, so that pure code and tests never read the machine's time.
 */

/** Time source. */
export interface Clock {
  /** Unix milliseconds. */
  nowMs(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { nowMs: () => Date.now() };
