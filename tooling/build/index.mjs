/** Shared tsup options: ESM for Node 20, source maps, no declarations (tsc writes those). */
/** @param {import("tsup").Options} options @returns {import("tsup").Options} */
export function library(options) {
  return {
    format: ["esm"],
    target: "node20",
    platform: "node",
    sourcemap: true,
    clean: true,
    dts: false,
    splitting: true,
    ...options,
  };
}
