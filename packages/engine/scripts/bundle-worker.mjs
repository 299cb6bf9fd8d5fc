/**
 * Bundles the local engine's worker from source, for runs from a clone (Node 20 cannot run TypeScript).
 *
 * Laws. Always from source, never from `dist`, so that a stale build cannot be tested by mistake. Each source file keeps
 * its own `import.meta.url`. Bundles are named by their content, so that processes may share them.
 */
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const entry = fileURLToPath(new URL("../src/local-worker.ts", import.meta.url));
const cacheDir = fileURLToPath(new URL("../node_modules/.cache/gimbal-worker", import.meta.url));

/** Age at which bundles of other sources are removed: long after any process that wrote one has loaded it. */
const staleMs = 3_600_000;

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

/** Writes the bundle and returns its file URL. */
export async function bundleWorker() {
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    format: "esm",
    platform: "node",
    target: "node20",
    conditions: ["@gimbal-rl/source"],
    sourcemap: "inline",
    outdir: cacheDir,
    logLevel: "silent",
    plugins: [ownUrls],
  });
  const [{ text }] = outputFiles;
  const hash = createHash("sha256").update(text).digest("hex").slice(0, 16);
  const file = join(cacheDir, `local-worker-${hash}.mjs`);
  await mkdir(cacheDir, { recursive: true });
  const partial = `${file}.${process.pid}.${performance.now()}`;
  await writeFile(partial, text);
  await rename(partial, file);
  await removeStale(file);
  return pathToFileURL(file).href;
}

async function removeStale(current) {
  for (const name of await readdir(cacheDir)) {
    const file = join(cacheDir, name);
    const age = await stat(file).then(
      ({ mtimeMs }) => Date.now() - mtimeMs,
      () => 0, // another process removed it
    );
    if (file !== current && age > staleMs) await rm(file, { force: true });
  }
}
