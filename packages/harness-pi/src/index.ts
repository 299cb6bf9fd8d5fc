/** Runs the unmodified Pi coding agent against any base URL. */
export { defaultCacheDir } from "./cache-folder.js";
export { createPiHarness, type PiHarnessOptions } from "./create-pi-harness.js";
export { readPiOutcome } from "./read-outcome.js";
export type { PiVersion } from "./versions.js";
