/**
 * Pause and resume: while paused no call starts sampling, and pausing waits for those that sample.
 *
 * Law: weights change only while nothing samples; a call that waits here keeps its client alive.
 */
import { GimbalError } from "@gimbal-rl/core";

/** The gate that every call passes before it samples. */
export class AdmissionGate {
  #paused = false;
  #running = 0;
  readonly #waiting = new Set<() => void>();
  readonly #idle = new Set<() => void>();
  readonly #resumed = new Set<() => void>();

  get isPaused(): boolean {
    return this.#paused;
  }

  get running(): number {
    return this.#running;
  }

  /**
   * Waits until the gate is open, then counts the caller as running. Call the returned function once when done.
   * @throws {GimbalError} `aborted` when the signal fires first.
   */
  async enter(signal: AbortSignal): Promise<() => void> {
    while (this.#paused && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const go = (): void => {
          this.#waiting.delete(go);
          signal.removeEventListener("abort", go);
          resolve();
        };
        this.#waiting.add(go);
        signal.addEventListener("abort", go);
      });
    }
    if (signal.aborted) throw new GimbalError("aborted", "The call was stopped before it sampled.");
    this.#running += 1;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#running -= 1;
      if (this.#running === 0) for (const go of [...this.#idle]) go();
    };
  }

  /**
   * Closes the gate; resolves when nothing samples any more.
   * @throws {GimbalError} `aborted` when the signal fires, or somebody resumes, first. After the signal the gate stays
   * closed.
   */
  async pause(signal?: AbortSignal): Promise<void> {
    this.#paused = true;
    if (this.#running === 0) return;
    await new Promise<void>((resolve, reject) => {
      const leave = (): void => {
        this.#idle.delete(done);
        this.#resumed.delete(stop);
        signal?.removeEventListener("abort", stop);
      };
      const done = (): void => {
        leave();
        resolve();
      };
      const stop = (): void => {
        leave();
        reject(
          new GimbalError(
            "aborted",
            `Pausing was stopped with ${this.#running} calls still sampling.`,
          ),
        );
      };
      if (signal?.aborted === true) {
        stop();
        return;
      }
      this.#idle.add(done);
      this.#resumed.add(stop);
      signal?.addEventListener("abort", stop, { once: true });
    });
  }

  /** Opens the gate. */
  resume(): void {
    this.#paused = false;
    for (const stop of [...this.#resumed]) stop();
    for (const go of [...this.#waiting]) go();
  }
}
