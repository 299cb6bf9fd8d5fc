import { afterAll, describe, expect, it } from "vitest";
import type { Backend } from "../backend.js";
import { backendSuite } from "../test/backend-suite.js";
import { createWasmBackend } from "./wasm-backend.js";

for (const threads of [1, 3]) {
  describe(`the WASM backend with ${threads} threads`, async () => {
    const backend: Backend = await createWasmBackend({ threads });
    afterAll(() => backend[Symbol.asyncDispose]());

    // Long limit: the suite compares with plain TypeScript, and the machine may be busy.
    for (const { name, run } of backendSuite) it(name, () => run(backend), 60_000);

    it("refuses buffers of wrong length, freed buffers and indices out of range", () => {
      const [a, b] = [backend.allocate(4), backend.allocate(5)];
      expect(() => backend.addScaled(a, b, 1)).toThrowError(/source holds 5 values, expected 4/);
      backend.free(a);
      expect(() => backend.fill(a, 0)).toThrowError(/freed buffer/);
      const ids = backend.allocateInts(Int32Array.of(0, 5));
      const out = backend.allocate(2);
      expect(() => backend.embed(out, b, ids, 1)).toThrowError(/0 to 5, expected 0 to 4/);
    });

    it("refuses a product whose weight was not refreshed since it changed", () => {
      const [out, x, weight] = [2, 3, 6].map((length) => backend.allocate(length));
      expect(() => backend.linear(out, x, weight, 2, 3)).toThrowError(/call refreshWeight first/);
      backend.refreshWeight(weight, 2, 3);
      backend.linear(out, x, weight, 2, 3);
      backend.addScaled(weight, weight, 1);
      expect(() => backend.linear(out, x, weight, 2, 3)).toThrowError(/weight that changed/);
    });

    it("refuses a buffer of another backend", async () => {
      const other = await createWasmBackend({ threads: 1 });
      expect(() => backend.fill(other.allocate(4), 1)).toThrowError(/another backend/);
      await other[Symbol.asyncDispose]();
    });
  });
}

describe("createWasmBackend", () => {
  it("refuses thread counts that are not positive integers", async () => {
    await expect(createWasmBackend({ threads: 0 })).rejects.toThrowError(/from 1 to 256/);
    await expect(createWasmBackend({ threads: 1.5 })).rejects.toThrowError(/from 1 to 256/);
  });

  it("hands out zeroed buffers, also where freed ones lay", async () => {
    const backend = await createWasmBackend({ threads: 2 });
    for (const length of [1, 7, 300, 5000, 20_000, 300_000]) {
      const dirty = backend.allocate(length);
      backend.fill(dirty, 3);
      backend.free(dirty);
      const values = await backend.read(backend.allocate(length));
      expect(values.every((value) => value === 0)).toBe(true);
    }
    await backend[Symbol.asyncDispose]();
  });
});
