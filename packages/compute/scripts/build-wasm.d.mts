/** Compiles assembly/ in memory; returns the text of src/generated/wasm.ts. */
export function buildWasm(): Promise<string>;
