import { describe, expect, it } from "vitest";
import { normaliseText } from "./normalise-text.js";

describe("normaliseText", () => {
  it("drops line-end style, blanks at line ends and blank lines at the end, and nothing else", () => {
    for (const text of ["a\n b", "a \r\n b\t\r\n", "a\r b\r\r", "a\n b\n \n\t\n"]) {
      expect(normaliseText(text)).toBe("a\n b");
    }
    expect(normaliseText("\n\na  b")).toBe("\n\na  b");
  });
});
