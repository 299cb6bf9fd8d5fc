import { GimbalError } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { defaultRunConfig, parseRunConfig } from "./run-config.js";

const valid = { ...defaultRunConfig, seed: 1, facts: { suite: "desk" } };

function refusalOf(value: unknown): string {
  try {
    parseRunConfig(value);
  } catch (error) {
    if (GimbalError.is(error) && error.code === "config-invalid") return error.message;
    throw error;
  }
  return "";
}

describe("parseRunConfig", () => {
  it("takes the defaults with a seed, as they come back from disk", () => {
    expect(parseRunConfig(JSON.parse(JSON.stringify(valid)))).toEqual(valid);
  });

  it.each([
    ["format", 2],
    ["seed", 2 ** 32],
    ["seed", -1],
    ["steps", 1.5],
    ["groupsPerStep", 0],
    ["groupSize", 1],
    ["temperature", 0],
    ["learningRate", Number.NaN],
    ["finalLearningRateFraction", 1.5],
    ["maxGradientNorm", Number.POSITIVE_INFINITY],
    ["klCoefficient", -1],
    ["quorum", 0],
    ["quorum", 1.1],
    ["groupDeadlineMs", 0],
    ["control", "none"],
    ["evaluation", {}],
    ["facts", null],
    ["epochs", undefined],
  ])("refuses %s = %s by name", (name, value) => {
    expect(refusalOf({ ...valid, [name]: value })).toContain(`"${name}`);
  });

  it("refuses what is no object", () => {
    for (const value of [null, "text", 1]) expect(refusalOf(value)).toContain("an object");
  });
});
