import { afterAll, describe, expect, it } from "vitest";
import type { Backend } from "../backend.js";
import { backendSuite } from "../test/backend-suite.js";
import { createWasmBackend } from "./wasm-backend.js";

for (const threads of [1, 3]) {
  describe(`the WASM backend with ${threads} threads`, async () => {
    const backend: Backend = await createWasmBackend({ threads });
    afterAll(() => backend[Symbol.asyncDispose]());

    for (const { name, run } of backendSuite) it(name, () => run(backend));

    it("refuses buffers of wrong length, freed buffers and indices out of range", () => {
      const [a, b] = [backend.allocate(4), backend.allocate(5)];
      expect(() => backend.addScaled(a, b, 1)).toThrowError(/source holds 5 values, expected 4/);
      backend.free(a);
      expect(() => backend.fill(a, 0)).toThrowError(/freed buffer/);
      const ids = backend.allocateInts(Int32Array.of(0, 5));
      expect(() => backend.embed(backend.allocate(2), b, ids, 1)).toThrowError(
        /0 to 5, expected 0 to 4/,
      );
    });
  });
}
