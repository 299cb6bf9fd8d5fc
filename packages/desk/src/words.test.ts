import { describe, expect, it } from "vitest";
import { someTasks } from "../test/text-checks.js";
import { deskWords } from "./words.js";

describe("deskWords", () => {
  it("is a closed list of 150 to 250 lower-case words", () => {
    expect(deskWords.length).toBeGreaterThanOrEqual(150);
    expect(deskWords.length).toBeLessThanOrEqual(250);
    expect(new Set(deskWords).size).toBe(deskWords.length);
    for (const word of deskWords) expect(word).toMatch(/^[a-z]{3,8}$/);
  });

  it("holds no word inside another", () => {
    for (const word of deskWords) {
      expect(deskWords.filter((other) => other.includes(word))).toEqual([word]);
    }
  });

  it("holds no word that is hidden in the fixed text of files and instructions", () => {
    const pattern = new RegExp(`\\b(?:${deskWords.join("|")})\\b`, "g");
    for (const task of someTasks(1, 16)) {
      const texts = [task.instruction, ...Object.entries(task.files).flat()];
      const fixed = texts.join("\n").replace(pattern, "#");
      for (const word of deskWords) expect(fixed.includes(word), `${word} in ${fixed}`).toBe(false);
    }
  });
});
