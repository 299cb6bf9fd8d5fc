/**
 * Reads an engine's events so that an engine which ignores its signal cannot hold whoever reads.
 *
 * Law: after the abort the source has a bounded time to end by itself; then it is left, and never waited for.
 */
import type { TimerClock } from "@gimbal-rl/core";

/** Options of {@link untilStopped}. */
export interface StopOptions {
  readonly signal: AbortSignal;
  readonly clock: TimerClock;
  /** How long the source may go on after the abort. */
  readonly stopWaitMs: number;
}

/** The items of a source, cut short when it goes on for too long after the abort. */
export async function* untilStopped<T>(
  source: AsyncIterable<T>,
  { signal, clock, stopWaitMs }: StopOptions,
): AsyncGenerator<T, void, void> {
  const iterator = source[Symbol.asyncIterator]();
  let isOverdue = false;
  let giveUp = (): void => {};
  let cancel = (): void => {};
  const arm = (): void => {
    cancel = clock.schedule(stopWaitMs, () => {
      isOverdue = true;
      giveUp();
    });
  };
  if (signal.aborted) arm();
  else signal.addEventListener("abort", arm, { once: true });
  const next = (): Promise<IteratorResult<T> | null> =>
    new Promise((resolve, reject) => {
      giveUp = () => resolve(null);
      iterator.next().then(resolve, reject);
    });
  try {
    while (!isOverdue) {
      const step = await next();
      if (step === null || step.done === true) return;
      yield step.value;
    }
  } finally {
    signal.removeEventListener("abort", arm);
    cancel();
    // A hung generator answers this only when it goes on, which may be never.
    leave(iterator).catch(() => {});
  }
}

async function leave(iterator: AsyncIterator<unknown>): Promise<void> {
  await iterator.return?.();
}
