/**
 * Progress on stderr: a bar that is redrawn on a terminal, a plain line now and then elsewhere.
 *
 * Law: lines that are printed while a bar is shown stand above it; a bar that ended leaves one line.
 */
import type { Clock } from "@gimbal-rl/core";

/** Where text goes. */
export interface TextSink {
  write(text: string): void;
}

/** What the display needs to know. */
export interface ProgressOptions {
  readonly sink: TextSink;
  readonly isTerminal: boolean;
  /** Columns of the terminal. */
  readonly columns: () => number;
  readonly clock: Clock;
}

/** One phase of work. */
export interface ProgressBar {
  /** Units done; `note` is shown after the count. */
  update(done: number, note?: string): void;
  /** Ends the phase; `note` replaces the count. Ending twice is allowed. */
  end(note?: string): void;
}

/** Lines and bars on one sink. */
export interface Progress {
  line(text: string): void;
  /** Starts a phase; a phase that is still shown is ended first. `total` 0 = not known. */
  bar(label: string, total: number): ProgressBar;
  /** Ends what is shown. */
  close(): void;
}

const redrawMs = 100;
/** Between two plain lines of one phase. */
const plainLineMs = 10_000;
const barWidth = 24;
const eraseLine = "\r\u001b[2K";

/** A duration for people: `8 s`, `2 min 05 s`. */
export function durationText(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
}

function drawBar(done: number, total: number): string {
  const filled = Math.round(Math.min(1, done / Math.max(1, total)) * barWidth);
  return "#".repeat(filled) + "-".repeat(barWidth - filled);
}

/** Creates the display. */
export function createProgress({ clock, columns, isTerminal, sink }: ProgressOptions): Progress {
  let shown: { draw(): string; end(): void } | null = null;

  const line = (text: string): void => {
    if (shown === null || !isTerminal) sink.write(`${text}\n`);
    else sink.write(`${eraseLine}${text}\n${shown.draw()}`);
  };

  const bar = (label: string, total: number): ProgressBar => {
    shown?.end();
    const startedAtMs = clock.nowMs();
    let lastAtMs = startedAtMs;
    let state = { done: 0, note: "" };
    let isOpen = true;
    const text = (): string => {
      const elapsed = durationText(clock.nowMs() - startedAtMs);
      const note = state.note === "" ? "" : `  ${state.note}`;
      const count = total > 0 ? `${state.done}/${total}` : String(state.done);
      const picture = isTerminal && total > 0 ? ` [${drawBar(state.done, total)}]` : "";
      return `${label}${picture} ${count}  ${elapsed}${note}`;
    };
    const own = {
      draw: (): string => text().slice(0, Math.max(20, columns() - 1)),
      end: (): void => finish(),
    };
    const finish = (note?: string): void => {
      if (!isOpen) return;
      isOpen = false;
      if (shown === own) shown = null;
      const elapsed = durationText(clock.nowMs() - startedAtMs);
      const last = note === undefined ? text() : `${label}  ${note}  (${elapsed})`;
      sink.write(`${isTerminal ? eraseLine : ""}${last}\n`);
    };
    shown = own;
    if (isTerminal) sink.write(own.draw());
    else sink.write(`${label}${total > 0 ? ` (${total})` : ""}\n`);
    return {
      update: (done, note) => {
        if (!isOpen) return;
        state = { done, note: note ?? state.note };
        const nowMs = clock.nowMs();
        if (nowMs - lastAtMs < (isTerminal ? redrawMs : plainLineMs)) return;
        lastAtMs = nowMs;
        if (isTerminal) sink.write(`${eraseLine}${own.draw()}`);
        else sink.write(`${text()}\n`);
      },
      end: finish,
    };
  };

  return { line, bar, close: () => shown?.end() };
}
