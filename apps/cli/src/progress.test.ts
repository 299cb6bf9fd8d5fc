import { expect, test } from "vitest";
import { createProgress, durationText } from "./progress.js";

function bench(isTerminal: boolean) {
  let text = "";
  let nowMs = 0;
  const progress = createProgress({
    sink: {
      write: (piece) => {
        text += piece;
      },
    },
    isTerminal,
    columns: () => 60,
    clock: { nowMs: () => nowMs },
  });
  return {
    progress,
    take: () => {
      const taken = text;
      text = "";
      return taken;
    },
    wait: (milliseconds: number) => {
      nowMs += milliseconds;
    },
  };
}

test("on a terminal the bar is redrawn in place, lines stand above it, and it ends as one line", () => {
  const { progress, take, wait } = bench(true);
  const bar = progress.bar("Attempts", 4);
  expect(take()).toBe(`Attempts [${"-".repeat(24)}] 0/4  0 s`);
  wait(1000);
  bar.update(2, "1 passed");
  expect(take()).toBe(
    `\r\u001b[2KAttempts [${"#".repeat(12)}${"-".repeat(12)}] 2/4  1 s  1 passed`,
  );
  bar.update(3);
  expect(take()).toBe("");
  progress.line("step 1");
  const bars = `[${"#".repeat(18)}${"-".repeat(6)}]`;
  expect(take()).toBe(`\r\u001b[2Kstep 1\nAttempts ${bars} 3/4  1 s  1 passed`);
  bar.end("done");
  bar.end();
  expect(take()).toBe("\r\u001b[2KAttempts  done  (1 s)\n");
  progress.line("after");
  expect(take()).toBe("after\n");
});

test("a bar never wraps, because a wrapped line cannot be redrawn", () => {
  const { progress, take, wait } = bench(true);
  const bar = progress.bar("A".repeat(100), 4);
  wait(1000);
  bar.update(1, "note");
  for (const drawn of take().split("\r\u001b[2K")) expect(drawn.length).toBeLessThan(60);
});

test("elsewhere there are plain lines only, and few of them", () => {
  const { progress, take, wait } = bench(false);
  const bar = progress.bar("Attempts", 1000);
  for (let done = 1; done <= 1000; done += 1) {
    wait(25);
    bar.update(done);
  }
  bar.end();
  const text = take();
  expect(text).not.toContain("\r");
  expect(text).not.toContain("\u001b");
  expect(text.trimEnd().split("\n")).toEqual([
    "Attempts (1000)",
    "Attempts 400/1000  10 s",
    "Attempts 800/1000  20 s",
    "Attempts 1000/1000  25 s",
  ]);
});

test("a new phase ends the one before", () => {
  const { progress, take } = bench(false);
  const first = progress.bar("One", 0);
  progress.bar("Two", 0);
  first.update(5);
  expect(take()).toBe("One\nOne 0  0 s\nTwo\n");
  progress.close();
  expect(take()).toBe("Two 0  0 s\n");
});

test("durations are for people", () => {
  expect([0, 59_400, 59_600, 3_600_000].map(durationText)).toEqual([
    "0 s",
    "59 s",
    "1 min 00 s",
    "60 min 00 s",
  ]);
});
