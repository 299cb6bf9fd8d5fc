import { describe, expect, it } from "vitest";
import { applySampling } from "./apply-sampling.js";

const defaults = { temperature: 0.8, topP: 0.9, topK: 5 };

describe("the sampling of a request", () => {
  it("is what was asked, else the default", () => {
    expect(applySampling({}, defaults)).toEqual(defaults);
    const asked = { temperature: 0, topP: 0.1, topK: 0 };
    expect(applySampling({ ...asked, maxTokens: 3, seed: 1 }, defaults)).toEqual(asked);
  });

  it("with a top-p of 0 keeps the most likely id alone, in words that every engine takes", () => {
    expect(applySampling({ topP: 0, topK: 40 }, defaults)).toEqual({
      temperature: 0.8,
      topP: 1,
      topK: 1,
    });
  });
});
