/**
 * Copies an answer to one client: waits for it, respects back-pressure, sends keep-alives, notices a lost client.
 */
import type { ServerResponse } from "node:http";
import type { TimerClock } from "@gimbal-rl/core";
import type { ReplayOutput } from "./replay-output.js";

/** Options of {@link sendOutput}. */
export interface SendOptions {
  readonly clock: TimerClock;
  readonly heartbeatMs: number;
  readonly stalledClientMs: number;
}

/**
 * Sends the whole answer.
 * @returns true when the last byte was handed to the operating system; false when the client left before.
 */
export async function sendOutput(
  output: ReplayOutput,
  response: ServerResponse,
  { clock, heartbeatMs, stalledClientMs }: SendOptions,
): Promise<boolean> {
  let wake: () => void = () => {};
  let beatDue = false;
  let isClosed = response.destroyed;
  let canWrite = true;
  const signal = (): void => wake();
  const unlisten = output.onChange(signal);
  response.once("close", () => {
    isClosed = true;
    signal();
  });
  response.on("drain", () => {
    canWrite = true;
    signal();
  });
  const finished = new Promise<boolean>((resolve) => {
    response.once("finish", () => resolve(true));
    response.once("close", () => resolve(response.writableFinished));
  });
  let cancelTimer = (): void => {};
  const arm = (): void => {
    cancelTimer();
    const delayMs = canWrite ? heartbeatMs : stalledClientMs;
    cancelTimer = clock.schedule(delayMs, () => {
      if (canWrite) beatDue = true;
      else response.destroy();
      signal();
    });
  };
  const flushed = (): Promise<boolean> => {
    // A client that stops reading before the last byte must not hold the answer for ever.
    cancelTimer();
    cancelTimer = clock.schedule(stalledClientMs, () => response.destroy());
    return finished;
  };
  let next = 0;
  try {
    arm();
    while (!isClosed) {
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      if (output.head !== null && !response.headersSent) {
        response.writeHead(output.head.status, output.head.headers);
        response.flushHeaders();
      }
      if (canWrite && output.head !== null && next < output.chunks.length) {
        const text = output.chunks.slice(next).join("");
        next = output.chunks.length;
        beatDue = false;
        // The last piece travels with the end of the response: one packet less.
        if (output.end === "complete") {
          response.end(text);
          return await flushed();
        }
        canWrite = response.write(text);
        arm();
        continue;
      }
      if (canWrite && output.end === "complete") {
        response.end();
        return await flushed();
      }
      if (canWrite && output.end === "cut") {
        response.destroy();
        return false;
      }
      if (canWrite && beatDue && response.headersSent) {
        const beat = output.heartbeat?.() ?? "";
        if (beat !== "") canWrite = response.write(beat);
      }
      if (beatDue) {
        beatDue = false;
        arm();
      }
      await changed;
    }
    return false;
  } finally {
    cancelTimer();
    unlisten();
  }
}
