/**
 * A clock that moves only when told, with timers. Order is by due time, then by the order of scheduling.
 */
import type { TimerClock } from "@gimbal-rl/core";

/** A clock under test control. */
export interface FakeClock extends TimerClock {
  /** Moves time forward, running due timers in order; pending promise callbacks run between timers. */
  advance(ms: number): Promise<void>;
  /** Timers that have not run and were not cancelled. */
  readonly pendingTimers: number;
}

/** Makes a clock that stands at `startMs`. */
export function createFakeClock(startMs = 1_700_000_000_000): FakeClock {
  let now = startMs;
  let order = 0;
  const timers = new Map<number, { readonly dueMs: number; readonly work: () => void }>();
  const nextDue = (untilMs: number): number | null => {
    let best: number | null = null;
    let bestDue = untilMs;
    for (const [id, timer] of timers) {
      if (timer.dueMs < bestDue || (timer.dueMs === bestDue && best === null)) {
        best = id;
        bestDue = timer.dueMs;
      }
    }
    return best;
  };
  return {
    nowMs: () => now,
    schedule: (delayMs, work) => {
      const id = order;
      order += 1;
      timers.set(id, { dueMs: now + Math.max(0, delayMs), work });
      return () => {
        timers.delete(id);
      };
    },
    advance: async (ms) => {
      const until = now + ms;
      for (let id = nextDue(until); id !== null; id = nextDue(until)) {
        const timer = timers.get(id);
        timers.delete(id);
        if (timer !== undefined) {
          now = timer.dueMs;
          timer.work();
        }
        await settle();
      }
      now = until;
      await settle();
    },
    get pendingTimers() {
      return timers.size;
    },
  };
}

/** Lets promise callbacks and one round of I/O run. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/**
 * Waits until a condition holds, yielding to I/O in between; for events that come over a real socket.
 * @throws {Error} naming `what` after about `timeoutMs`.
 */
export async function waitUntil(
  what: string,
  condition: () => boolean,
  timeoutMs = 3000,
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`Waited ${timeoutMs} ms for: ${what}.`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
