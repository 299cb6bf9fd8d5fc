import { describe, it } from "vitest";
import { createReferenceBackend } from "../reference/reference-backend.js";
import { policySuite } from "../test/policy-suite.js";

describe("a policy over the reference backend", () => {
  for (const { name, run } of policySuite) it(name, () => run(createReferenceBackend()));
});
