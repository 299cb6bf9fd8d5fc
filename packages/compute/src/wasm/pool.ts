/**
 * The WebAssembly instance of the owning thread and its helper threads, in Node and in browsers.
 *
 * Law: threads only take chunks of a kernel's outputs, so the result is the same for any number of them. The owning
 * thread works too and never waits for a helper that has not joined the job.
 */
import { GimbalError } from "@gimbal-rl/core";
import { kernels, wasmBase64 } from "../generated/wasm.js";
import { type SharedMemory, webAssembly } from "./web-assembly.js";

const PAGE = 65536;
const MAXIMUM_PAGES = 65536;
/** Byte offsets of the control block; see assembly/index.ts. */
const CONTROL = 1024;
const GENERATION = CONTROL;
const STOP = CONTROL + 4;
const STATE = CONTROL + 128;
const KERNEL = CONTROL + 256;
const ARGUMENTS = CONTROL + 320;
const FAILED = CONTROL + 512;
/** First byte that the heap may use; below it stand the control block and the kernels' constants. */
export const HEAP_START = 4096;

/** Looks at a shared word before a thread goes to sleep: some 20 microseconds. */
const WORKER_SPINS = 20_000;
const OWNER_SPINS = 20_000;
/** Work (floating-point operations) below which a job stays on one thread, and the size of one chunk. */
const SHARED_WORK = 400_000;
const CHUNK_WORK = 150_000;

/** Name of a kernel. */
export type Kernel = keyof typeof kernels;

interface KernelExports {
  run(kernel: number, argumentsAt: number, start: number, end: number, thread: number): void;
  runShared(control: number, spins: number): number;
  zero(start: number, bytes: number): void;
  writeConstants(): void;
}

/** What both kinds of worker offer. */
interface Helper {
  end(): Promise<void>;
}

interface NodeWorker {
  once(event: string, listener: (value: unknown) => void): void;
  ref(): void;
  unref(): void;
}
interface NodeThreads {
  Worker: new (code: string, options: Record<string, unknown>) => NodeWorker;
}
interface WebWorker {
  onmessage: ((event: { data: unknown }) => void) | null;
  onerror: ((event: { message?: string }) => void) | null;
  postMessage(message: unknown): void;
  terminate(): void;
}
type WebWorkerConstructor = new (url: string, options: { type: "module" }) => WebWorker;

/** Runs in a helper thread. A trap is reported in shared memory instead of leaving the owner waiting. */
const serveSource = `
const serve = ({ module, memory, thread, control, spins, failed, state }) => {
  const words = new Int32Array(memory.buffer, 0, 1024);
  const instance = new WebAssembly.Instance(module, { env: { memory } });
  try {
    instance.exports.serve(control, thread, spins);
  } catch {
    Atomics.store(words, failed >> 2, 1);
    Atomics.sub(words, state >> 2, 1);
    Atomics.notify(words, state >> 2);
  }
};`;
const nodeSource = `const { workerData, parentPort } = require("node:worker_threads");${serveSource}
parentPort.postMessage("ready"); serve(workerData);`;
const webSource = `${serveSource}
self.onmessage = ({ data }) => { self.postMessage("ready"); serve(data); self.postMessage("end"); };`;

function nodeThreads(): NodeThreads | undefined {
  const host = (globalThis as { process?: { getBuiltinModule?: (id: string) => unknown } }).process;
  return host?.getBuiltinModule?.("node:worker_threads") as NodeThreads | undefined;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** Reserves address space, less where a system refuses four gigabytes. */
function createMemory(): { memory: SharedMemory; maximumBytes: number } {
  for (const maximum of [MAXIMUM_PAGES, MAXIMUM_PAGES / 2, MAXIMUM_PAGES / 4]) {
    try {
      const memory = new (webAssembly().Memory)({ initial: 64, maximum, shared: true });
      return { memory, maximumBytes: maximum * PAGE };
    } catch {
      // Try a smaller reservation.
    }
  }
  throw new GimbalError(
    "unavailable",
    "This host gives no shared WebAssembly memory. In a browser the page must be cross-origin isolated.",
    { boundary: "compute" },
  );
}

async function startNodeHelper(threads: NodeThreads, data: object): Promise<Helper> {
  // No execArgv: loaders of the parent are neither needed nor wanted here.
  const worker = new threads.Worker(nodeSource, { eval: true, execArgv: [], workerData: data });
  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    worker.once("message", () => resolve());
    worker.once("error", reject);
  });
  worker.unref();
  return {
    end: () => {
      // Waiting for a thread that keeps no process alive would end the process with exit code 13 instead.
      worker.ref();
      return ended;
    },
  };
}

async function startWebHelper(Constructor: WebWorkerConstructor, data: object): Promise<Helper> {
  const url = URL.createObjectURL(new Blob([webSource], { type: "text/javascript" }));
  const worker = new Constructor(url, { type: "module" });
  let ended = () => {};
  const end = new Promise<void>((resolve) => {
    ended = resolve;
  });
  try {
    await new Promise<void>((resolve, reject) => {
      worker.onmessage = ({ data: word }) => (word === "ready" ? resolve() : ended());
      worker.onerror = (event) => reject(new Error(event.message ?? "worker failed to start"));
      worker.postMessage(data);
    });
  } catch (error) {
    worker.terminate();
    throw error;
  } finally {
    URL.revokeObjectURL(url);
  }
  return { end: () => end.then(() => worker.terminate()) };
}

/** Waits for all helpers. When one did not start, those that did are ended and its error is thrown. */
async function allStarted(
  starts: readonly Promise<Helper>[],
  words: Int32Array,
): Promise<Helper[]> {
  const results = await Promise.allSettled(starts);
  const helpers = results.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = results.find((one) => one.status === "rejected");
  if (failed === undefined) return helpers;
  await endHelpers(helpers, words);
  throw failed.reason;
}

async function endHelpers(helpers: readonly Helper[], words: Int32Array): Promise<void> {
  Atomics.store(words, STOP >> 2, 1);
  Atomics.add(words, GENERATION >> 2, 1);
  Atomics.notify(words, GENERATION >> 2);
  await Promise.all(helpers.map((helper) => helper.end()));
}

/** Whether this thread may sleep in Atomics.wait (a browser's main thread may not). */
function maySleep(words: Int32Array): boolean {
  try {
    Atomics.wait(words, 0, 1, 0);
    return true;
  } catch {
    return false;
  }
}

/** Kernels on one shared memory, run by the owning thread and `threads - 1` helpers. */
export class KernelPool {
  readonly memory: SharedMemory;
  readonly maximumBytes: number;
  readonly threads: number;
  readonly #exports: KernelExports;
  readonly #helpers: readonly Helper[];
  /** The first pages; they exist from the start, so this view never goes stale. */
  readonly #words: Int32Array;
  readonly #maySleep: boolean;

  private constructor(
    memory: SharedMemory,
    maximumBytes: number,
    exports: KernelExports,
    helpers: readonly Helper[],
  ) {
    this.memory = memory;
    this.maximumBytes = maximumBytes;
    this.threads = helpers.length + 1;
    this.#exports = exports;
    this.#helpers = helpers;
    this.#words = new Int32Array(memory.buffer, 0, HEAP_START / 4);
    this.#maySleep = maySleep(this.#words);
  }

  /** @throws `unavailable` when the host lacks shared memory, WASM SIMD or workers. */
  static async start(threads: number): Promise<KernelPool> {
    const { memory, maximumBytes } = createMemory();
    try {
      const module = await webAssembly().compile(decodeBase64(wasmBase64));
      const instance = await webAssembly().instantiate(module, { env: { memory } });
      const exports = instance.exports as KernelExports;
      exports.writeConstants();
      const node = nodeThreads();
      const web = (globalThis as { Worker?: WebWorkerConstructor }).Worker;
      const starts: Promise<Helper>[] = [];
      for (let thread = 1; thread < threads; thread += 1) {
        const data = {
          module,
          memory,
          thread,
          control: CONTROL,
          spins: WORKER_SPINS,
          failed: FAILED,
          state: STATE,
        };
        if (node !== undefined) starts.push(startNodeHelper(node, data));
        else if (web !== undefined) starts.push(startWebHelper(web, data));
        else throw new Error("this host has no workers; use threads: 1");
      }
      const words = new Int32Array(memory.buffer, 0, HEAP_START / 4);
      return new KernelPool(memory, maximumBytes, exports, await allStarted(starts, words));
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw new GimbalError("unavailable", `The CPU backend cannot start: ${text}.`, {
        cause: error,
        boundary: "compute",
      });
    }
  }

  /**
   * Runs a kernel over `units` outputs. `work` estimates its floating-point operations and decides whether helpers
   * are asked. Arguments are 32-bit words.
   */
  run(kernel: Kernel, units: number, work: number, args: readonly number[]): void {
    if (units <= 0) return;
    const words = this.#words;
    const at = ARGUMENTS >> 2;
    for (let i = 0; i < args.length; i += 1) words[at + i] = args[i];
    if (this.threads === 1 || units === 1 || work < SHARED_WORK) {
      this.#exports.run(kernels[kernel], ARGUMENTS, 0, units, 0);
      return;
    }
    const chunks = Math.max(this.threads, Math.ceil(work / CHUNK_WORK));
    words[KERNEL >> 2] = kernels[kernel];
    words[(KERNEL >> 2) + 1] = units;
    words[(KERNEL >> 2) + 2] = Math.max(1, Math.floor(units / chunks));
    this.#exports.runShared(CONTROL, this.#maySleep ? OWNER_SPINS : 0);
    const state = STATE >> 2;
    for (let inside = Atomics.load(words, state); inside > 0; inside = Atomics.load(words, state)) {
      if (this.#maySleep) Atomics.wait(words, state, inside);
    }
    if (words[FAILED >> 2] !== 0) {
      throw new GimbalError("engine-failed", `A helper thread failed in kernel ${kernel}.`, {
        boundary: "compute",
      });
    }
  }

  /** Zeroes a range of bytes. */
  zero(pointer: number, bytes: number): void {
    this.#exports.zero(pointer, bytes);
  }

  /** Ends the helper threads. */
  async end(): Promise<void> {
    await endHelpers(this.#helpers, this.#words);
  }
}
