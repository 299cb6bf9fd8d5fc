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
    ["learningRateScales", []],
    ["learningRateScales", { atention: 5 }],
    ["learningRateScales", { norm: -1 }],
    ["learningRateScales", { toString: 1 }],
    ["evaluation", {}],
    ["evaluation", []],
    ["evaluation", { heldoutTasks: 1, heldoutFamilyTasks: 1, heldoutFamily: 1 }],
    ["facts", null],
    ["facts", []],
    ["facts", { suite: {} }],
    ["learningRateScale", {}],
    ["toString", 1],
    ["epochs", undefined],
  ])("refuses %s = %s by name", (name, value) => {
    expect(refusalOf({ ...valid, [name]: value })).toContain(`"${name}`);
  });

  it("takes every kind of learning-rate scale", () => {
    const learningRateScales = { embedding: 0, norm: 10, attention: 1, mlp: 0.5, finalNorm: 200 };
    expect(parseRunConfig({ ...valid, learningRateScales })).toEqual({
      ...valid,
      learningRateScales,
    });
  });

  it("refuses what is no object", () => {
    for (const value of [null, "text", 1, []]) expect(refusalOf(value)).toContain("an object");
  });
});
