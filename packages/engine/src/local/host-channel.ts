/**
 * How the two halves of the local engine reach each other: by messages to a worker thread, or by calls in one thread.
 *
 * Law: both channels deliver in order and never call back into the sender.
 */
import { Worker } from "node:worker_threads";
import { attributeError, GimbalError } from "@gimbal-rl/core";
import { createModelHost, type ModelHostOptions } from "./model-host.js";
import type { HostReply, HostRequest } from "./protocol.js";
import { resolveWorkerEntry } from "./worker-entry.js";

/** One connection to a model host. */
export interface HostChannel {
  post(message: HostRequest): void;
  /** @param onReply - Every answer. @param onFailure - The other side is gone for good. */
  listen(onReply: (reply: HostReply) => void, onFailure: (error: GimbalError) => void): void;
  /** Whether an open call keeps the process running. */
  keepAlive(open: boolean): void;
  close(): Promise<void>;
}

/** The model in the caller's thread. */
export function createInProcessChannel(options: ModelHostOptions = {}): HostChannel {
  let deliver: (reply: HostReply) => void = () => {};
  const host = createModelHost((reply) => queueMicrotask(() => deliver(reply)), options);
  return {
    post: (message) => queueMicrotask(() => host.receive(message)),
    listen: (onReply) => {
      deliver = onReply;
    },
    keepAlive: () => {},
    close: () => Promise.resolve(),
  };
}

/**
 * The model in a worker thread.
 * @throws {GimbalError} `engine-failed` when the worker's code is not found.
 */
export async function createWorkerChannel(): Promise<HostChannel> {
  const entry = await resolveWorkerEntry();
  const worker = new Worker(entry.url, { name: "gimbal-local-engine", ...entry.options });
  let closing = false;
  let failed = false;
  return {
    post: (message) => worker.postMessage(message),
    listen: (onReply, onFailure) => {
      const fail = (error: GimbalError): void => {
        if (closing || failed) return;
        failed = true;
        onFailure(error);
      };
      worker.on("message", (reply: HostReply) => onReply(reply));
      worker.on("error", (error) =>
        fail(attributeError(error, "engine-failed", "compute", "The engine's worker crashed")),
      );
      worker.on("exit", (code) =>
        fail(
          new GimbalError(
            "engine-failed",
            `The engine's worker ended with exit code ${code} while the engine was open. Create a new engine; if it ends again, lower its slots or threads.`,
            { boundary: "compute", details: { exitCode: code } },
          ),
        ),
      );
    },
    keepAlive: (open) => {
      if (open) worker.ref();
      else worker.unref();
    },
    close: async () => {
      closing = true;
      await worker.terminate();
    },
  };
}
