export { blobIdOf } from "./blob-files.js";
export { createMemoryStore } from "./memory-store.js";
export { type OpenStoreOptions, openStore } from "./open-store.js";
