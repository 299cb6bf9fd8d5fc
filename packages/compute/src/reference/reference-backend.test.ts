import { describe, expect, it } from "vitest";
import { backendSuite } from "../test/backend-suite.js";
import { createReferenceBackend } from "./reference-backend.js";

describe("the reference backend", () => {
  for (const { name, run } of backendSuite) it(name, () => run(createReferenceBackend()));

  it("refuses buffers of wrong length and freed buffers", () => {
    const backend = createReferenceBackend();
    const [a, b] = [backend.allocate(4), backend.allocate(5)];
    expect(() => backend.addScaled(a, b, 1)).toThrowError(/source holds 5 values, expected 4/);
    backend.free(a);
    expect(() => backend.fill(a, 0)).toThrowError(/freed buffer/);
  });
});
