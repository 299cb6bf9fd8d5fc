import { createFakeClock, settle } from "@gimbal-rl/testkit";
import { describe, expect, it } from "vitest";
import { untilStopped } from "./until-stopped.js";

function start(source: AsyncIterable<number>): {
  readonly seen: number[];
  readonly abort: AbortController;
  readonly clock: ReturnType<typeof createFakeClock>;
  readonly ended: Promise<string>;
} {
  const abort = new AbortController();
  const clock = createFakeClock();
  const seen: number[] = [];
  const read = async (): Promise<string> => {
    const options = { signal: abort.signal, clock, stopWaitMs: 100 };
    for await (const item of untilStopped(source, options)) seen.push(item);
    return "end";
  };
  return { seen, abort, clock, ended: read().catch((error: unknown) => String(error)) };
}

const hang = (): Promise<never> => new Promise(() => {});

describe("a source that is read until it is stopped", () => {
  it("passes items and errors on, and leaves no timer", async () => {
    const run = start(
      (async function* () {
        yield 1;
        yield 2;
        throw new Error("broken");
      })(),
    );
    expect(await run.ended).toBe("Error: broken");
    expect([run.seen, run.clock.pendingTimers]).toEqual([[1, 2], 0]);
  });

  it("may end by itself after the abort", async () => {
    let go = (): void => {};
    const run = start(
      (async function* () {
        yield 1;
        await new Promise<void>((resolve) => {
          go = resolve;
        });
        yield 2;
      })(),
    );
    await settle();
    run.abort.abort();
    await run.clock.advance(99);
    go();
    expect(await run.ended).toBe("end");
    expect([run.seen, run.clock.pendingTimers]).toEqual([[1, 2], 0]);
  });

  it.each([
    ["hangs", hang],
    ["goes on for ever", () => new Promise<void>((resolve) => setImmediate(resolve))],
  ])(
    "is left when it %s after the abort, even when leaving it hangs or throws",
    async (_, wait) => {
      for (const leave of [hang, () => Promise.reject(new Error("no")), undefined]) {
        const run = start({
          [Symbol.asyncIterator]: () => ({
            next: async () => {
              await wait();
              return { done: false, value: 1 };
            },
            ...(leave === undefined ? {} : { return: leave }),
          }),
        });
        await settle();
        run.abort.abort();
        await run.clock.advance(100);
        expect(await run.ended).toBe("end");
        expect(run.clock.pendingTimers).toBe(0);
      }
    },
  );

  it("is left by a reader whose signal was aborted before", async () => {
    const abort = new AbortController();
    abort.abort();
    const clock = createFakeClock();
    const source = { [Symbol.asyncIterator]: () => ({ next: hang }) };
    const items = untilStopped(source, { signal: abort.signal, clock, stopWaitMs: 100 });
    const first = items.next();
    await clock.advance(100);
    expect(await first).toEqual({ done: true, value: undefined });
  });
});
