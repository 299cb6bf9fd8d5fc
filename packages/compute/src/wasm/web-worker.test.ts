/** The road that browsers take: no Node modules, workers from Blob URLs. Node's workers stand in for the browser's. */
import { resolveObjectURL } from "node:buffer";
import { Worker as NodeWorker } from "node:worker_threads";
import { afterEach, expect, it, vi } from "vitest";
import { createWasmBackend } from "./wasm-backend.js";

const prelude = `
const { parentPort } = require("node:worker_threads");
globalThis.self = globalThis;
globalThis.postMessage = (message) => parentPort.postMessage(message);
parentPort.on("message", (data) => globalThis.onmessage({ data }));
`;

let started = 0;
let ended = 0;
/** The worker, counted from 1, that fails to start; 0 = none. */
let failing = 0;

class WebWorker {
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: ((event: { message: string }) => void) | null = null;
  #waiting: unknown[] = [];
  #worker: NodeWorker | undefined;

  constructor(url: string) {
    void this.#start(url);
  }

  async #start(url: string): Promise<void> {
    started += 1;
    const isFailing = started === failing;
    const code = (await resolveObjectURL(url)?.text()) ?? "";
    const source = isFailing ? "throw new Error('no room')" : prelude + code;
    const worker = new NodeWorker(source, { eval: true, execArgv: [] });
    worker.on("message", (data) => this.onmessage?.({ data }));
    worker.on("error", ({ message }) => this.onerror?.({ message }));
    for (const message of this.#waiting) worker.postMessage(message);
    this.#worker = worker;
  }

  postMessage(message: unknown): void {
    if (this.#worker === undefined) this.#waiting.push(message);
    else this.#worker.postMessage(message);
  }

  terminate(): void {
    ended += 1;
    void this.#worker?.terminate();
  }
}

/** Node's modules are found through `process.getBuiltinModule`; a browser has none. */
function hideNode(): void {
  vi.spyOn(process, "getBuiltinModule").mockReturnValue(undefined as never);
}

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  started = 0;
  ended = 0;
  failing = 0;
});

it("computes on Blob workers where Node's modules are missing, and ends them on dispose", async () => {
  hideNode();
  vi.stubGlobal("Worker", WebWorker);
  const backend = await createWasmBackend({ threads: 3 });
  expect(started).toBe(2);
  const length = 1_000_000;
  const x = backend.allocate(length);
  for (let i = 0; i < 20; i += 1) {
    backend.fill(x, i);
    backend.addScaled(x, x, 0.5);
    const values = await backend.read(x);
    expect(values.every((value) => value === i * 1.5)).toBe(true);
  }
  await backend[Symbol.asyncDispose]();
});

it("says what is missing where there are no workers", async () => {
  hideNode();
  vi.stubGlobal("Worker", undefined);
  await expect(createWasmBackend({ threads: 2 })).rejects.toThrowError(/use threads: 1/);
  const backend = await createWasmBackend({ threads: 1 });
  const x = backend.allocate(3);
  backend.fill(x, 2);
  expect(await backend.read(x)).toEqual(Float32Array.of(2, 2, 2));
});

it("ends the threads that started when another one does not", async () => {
  hideNode();
  vi.stubGlobal("Worker", WebWorker);
  failing = 2;
  await expect(createWasmBackend({ threads: 4 })).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("no room"),
  });
  expect([started, ended]).toEqual([3, 3]);
});

it("ends Node's threads too when one does not start", async () => {
  let exits = 0;
  class Worker extends NodeWorker {
    constructor(code: string, options: { readonly workerData: { readonly thread: number } }) {
      const isFailing = options.workerData.thread === 2;
      super(isFailing ? "throw new Error('no room')" : code, { ...options, eval: true });
      if (isFailing) return;
      this.once("exit", () => {
        exits += 1;
      });
    }
  }
  vi.spyOn(process, "getBuiltinModule").mockReturnValue({ Worker } as never);
  await expect(createWasmBackend({ threads: 4 })).rejects.toMatchObject({ code: "unavailable" });
  expect(exits).toBe(2);
});
