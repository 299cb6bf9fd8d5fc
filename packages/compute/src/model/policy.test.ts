import { afterAll, describe, expect, it } from "vitest";
import { createReferenceBackend } from "../reference/reference-backend.js";
import { policySuite } from "../test/policy-suite.js";
import { trainingDigest } from "../test/training-cases.js";
import { createWasmBackend } from "../wasm/wasm-backend.js";

describe("a policy over the reference backend", () => {
  for (const { name, run } of policySuite) it(name, () => run(createReferenceBackend()));
});

describe("a policy over the WASM backend", async () => {
  const backend = await createWasmBackend({ threads: 2 });
  afterAll(() => backend[Symbol.asyncDispose]());

  for (const { name, run } of policySuite) it(name, () => run(backend));

  it("trains to the same bits with 1, 2 and 4 threads", async () => {
    const expected = await trainingDigest(backend);
    for (const threads of [1, 4]) {
      await using other = await createWasmBackend({ threads });
      expect(await trainingDigest(other)).toBe(expected);
    }
  });
});
