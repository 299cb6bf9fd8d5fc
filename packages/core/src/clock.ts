/**
 * The Clock ports, so that pure code and tests never read the machine's time.
 */

/** Time source. */
export interface Clock {
  /** Unix milliseconds. */
  nowMs(): number;
}

/** The machine's clock. */
export const systemClock: Clock = { nowMs: () => Date.now() };

/** A clock that can also call back later; what servers with time-outs take. */
export interface TimerClock extends Clock {
  /** Runs `work` once after `delayMs`; the returned function cancels it. A pending timer keeps no process alive. */
  schedule(delayMs: number, work: () => void): () => void;
}

/** The machine's clock and timers. */
export const systemTimerClock: TimerClock = {
  nowMs: () => Date.now(),
  schedule: (delayMs, work) => {
    const timer = setTimeout(work, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
