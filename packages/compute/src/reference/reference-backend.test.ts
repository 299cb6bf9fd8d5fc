import { describe, expect, it } from "vitest";
import { backendSuite } from "../test/backend-suite.js";
import { createReferenceBackend } from "./reference-backend.js";

describe("the reference backend", () => {
  for (const { name, run } of backendSuite) it(name, () => run(createReferenceBackend()));

  it("refuses buffers of wrong length, weights that were not refreshed, and freed buffers", () => {
    const backend = createReferenceBackend();
    const [a, b] = [backend.allocate(4), backend.allocate(5)];
    expect(() => backend.addScaled(a, b, 1)).toThrowError(/source holds 5 values, expected 4/);
    const [x, out] = [backend.allocate(2), backend.allocate(2)];
    expect(() => backend.linear(out, x, a, 2, 2)).toThrowError(/refreshWeight before its next use/);
    backend.refreshWeight(a, 2, 2);
    backend.linear(out, x, a, 2, 2);
    backend.free(a);
    expect(() => backend.fill(a, 0)).toThrowError(/freed buffer/);
  });
});
