/**
 * Which earlier call a retry-marked request belongs to.
 *
 * Law: only a call whose answer no client has completely received can be attached to; an equal body without a mark
 * never is (deliberate repeats exist).
 */
import { createHash } from "node:crypto";
import type { CallId } from "@gimbal-rl/core";
import type { CallRun } from "./call-run.js";

/** Finished but undelivered answers kept for a replay; older ones are forgotten. */
const maxUndelivered = 8;
/** Digests remembered to name the call that a new sample repeats. */
const maxKnown = 256;

/** Identity of a request: where it went and its exact bytes. */
export function requestDigest(path: string, body: Uint8Array): string {
  return createHash("sha256").update(path).update("\0").update(body).digest("base64");
}

/** The attachable calls of one session. */
export class RetryTable {
  /** Insertion order is age. */
  readonly #attachable = new Map<CallRun, string>();
  readonly #latest = new Map<string, CallId>();

  add(digest: string, run: CallRun): void {
    this.#attachable.set(run, digest);
    this.#latest.delete(digest);
    this.#latest.set(digest, run.callId);
    if (this.#latest.size > maxKnown) {
      for (const oldest of this.#latest.keys()) {
        this.#latest.delete(oldest);
        break;
      }
    }
    let finished = [...this.#attachable.keys()].filter((known) => known.output.isEnded).length;
    for (const known of this.#attachable.keys()) {
      if (finished <= maxUndelivered) break;
      if (!known.output.isEnded) continue;
      this.#attachable.delete(known);
      finished -= 1;
    }
  }

  /** The call was delivered whole, failed or was stopped: nobody may attach any more. */
  remove(run: CallRun): void {
    this.#attachable.delete(run);
  }

  /** The call to attach to: one that lost its client before one that still has it, the latest first. */
  find(digest: string): CallRun | null {
    let best: CallRun | null = null;
    for (const [run, known] of this.#attachable) {
      if (known !== digest) continue;
      if (best === null || run.clients === 0 || best.clients > 0) best = run;
    }
    return best;
  }

  /** The latest call with this digest, delivered or not. */
  latest(digest: string): CallId | null {
    return this.#latest.get(digest) ?? null;
  }

  clear(): void {
    this.#attachable.clear();
    this.#latest.clear();
  }
}
