/**
 * A minimal Web Worker over node:worker_threads, so that jax-js, which looks for a global `Worker`, gets the threads
 * that it has in a browser. Plain Node would leave it on one thread, and the comparison would flatter us.
 */
import { resolveObjectURL } from "node:buffer";
import { Worker as NodeWorker } from "node:worker_threads";

const prelude = `
const { parentPort } = require("node:worker_threads");
globalThis.self = globalThis;
globalThis.postMessage = (message) => parentPort.postMessage(message);
parentPort.on("message", (data) => globalThis.onmessage({ data }));
`;

class WebWorker {
  onmessage = null;
  onerror = null;
  #waiting = [];
  #worker = null;

  constructor(url) {
    resolveObjectURL(url)
      .text()
      .then((code) => {
        this.#worker = new NodeWorker(prelude + code, { eval: true, execArgv: [] });
        this.#worker.on("message", (data) => this.onmessage?.({ data }));
        this.#worker.on("error", (error) => this.onerror?.(error));
        for (const message of this.#waiting) this.#worker.postMessage(message);
      });
  }

  postMessage(message) {
    if (this.#worker === null) this.#waiting.push(message);
    else this.#worker.postMessage(message);
  }
}

/** Installs the global `Worker` and `navigator` that jax-js asks for. Call before importing it. */
export function installWebWorkers(threads) {
  globalThis.Worker = WebWorker;
  Object.defineProperty(globalThis, "navigator", {
    value: { hardwareConcurrency: threads, userAgent: "node" },
    configurable: true,
  });
}
