import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { buildWasm } from "../../scripts/build-wasm.mjs";

it("embeds exactly what assembly/ compiles to", async () => {
  const committed = await readFile(new URL("../generated/wasm.ts", import.meta.url), "utf8");
  // When this fails: node scripts/build-wasm.mjs, and commit src/generated/wasm.ts.
  expect(await buildWasm()).toBe(committed);
}, 60_000);
