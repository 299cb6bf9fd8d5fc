/**
 * Entry of the local engine's worker thread.
 */
import { parentPort } from "node:worker_threads";
import { createModelHost } from "./local/model-host.js";
import type { HostRequest } from "./local/protocol.js";

if (parentPort !== null) {
  const port = parentPort;
  const host = createModelHost((reply) => port.postMessage(reply));
  port.on("message", (message: HostRequest) => host.receive(message));
}
