/**
 * Bundles the local engine's worker from source, for runs from a clone (Node 20 cannot run TypeScript).
 *
 * Law: always from source, never from `dist`, so that a stale build cannot be tested by mistake. Each source file keeps
 * its own `import.meta.url`.
 */

import { rmSync } from "node:fs";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const entry = fileURLToPath(new URL("../src/local-worker.ts", import.meta.url));

/** Keeps `import.meta.url` of each source file. */
const ownUrls = {
  name: "own-urls",
  setup(setup) {
    setup.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const url = JSON.stringify(pathToFileURL(path).href);
      return { contents: text.replaceAll("import.meta.url", url), loader: "ts" };
    });
  },
};

/** Writes the bundle into a fresh temporary folder, which goes when the process exits; returns its file URL. */
export async function bundleWorker() {
  const dir = await mkdtemp(join(tmpdir(), "gimbal-engine-"));
  process.once("exit", () => rmSync(dir, { recursive: true, force: true }));
  const outfile = join(dir, "local-worker.mjs");
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["@gimbal-rl/source"],
    sourcemap: "inline",
    logLevel: "silent",
    plugins: [ownUrls],
  });
  return pathToFileURL(outfile).href;
}
