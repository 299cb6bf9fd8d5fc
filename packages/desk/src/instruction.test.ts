import { createRandom } from "@gimbal-rl/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createDraw } from "./draw.js";
import { deskFamilies } from "./families.js";
import { parseInstruction, renderInstruction } from "./instruction.js";

describe("instructions", () => {
  it("are parsed back to the family, the variant, the phrasing and the fields", () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(...deskFamilies), fc.nat(), (seed, family, which) => {
        const member = family.draw(createDraw(createRandom(seed)));
        const phrasing = which % (family.phrasings[member.variant]?.length ?? 0);
        const text = renderInstruction(family, member.variant, phrasing, member.fields);
        const { variant, fields } = member;
        expect(parseInstruction(deskFamilies, text)).toEqual({ family, variant, phrasing, fields });
      }),
    );
  });

  it("have at least three phrasings for every variant", () => {
    for (const family of deskFamilies) {
      for (const phrasings of Object.values(family.phrasings)) {
        expect(new Set(phrasings).size).toBeGreaterThanOrEqual(3);
      }
    }
  });

  it("give null for a text of another suite", () => {
    expect(parseInstruction(deskFamilies, "Rename the function `lamp` to `river`.")).toBeNull();
  });

  it("refuse a missing field", () => {
    const [family] = deskFamilies.filter((one) => one.name === "move-value");
    expect(() => family && renderInstruction(family, "plain", 0, { key: "lamp" })).toThrow("from");
  });
});
