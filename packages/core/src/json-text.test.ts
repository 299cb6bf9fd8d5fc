import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { GimbalError } from "./errors.js";
import {
  type JsonNode,
  jsonMember,
  jsonToPlain,
  parseJsonText,
  pythonFloatText,
  pythonNumberText,
  uniqueEntries,
} from "./json-text.js";

function errorOf(text: string): string {
  try {
    parseJsonText(text);
  } catch (error) {
    if (GimbalError.is(error)) return error.message;
    throw error;
  }
  return "accepted";
}

function slices(node: JsonNode, text: string): void {
  // Each slice, parsed alone, is the same value.
  expect(jsonToPlain(parseJsonText(text.slice(node.start, node.end)))).toEqual(jsonToPlain(node));
  if (node.kind === "array") for (const item of node.items) slices(item, text);
  if (node.kind === "object") for (const { value } of node.entries) slices(value, text);
}

describe("parsing", () => {
  test("agrees with JSON.parse on every JSON text, however it is spaced", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.integer({ min: 0, max: 3 }), (value, indent) => {
        const text = ` ${JSON.stringify(value, null, indent)}\n`;
        expect(jsonToPlain(parseJsonText(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  test("refuses exactly what JSON.parse refuses", () => {
    const piece = fc.constantFrom(
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      '"a"',
      '"',
      "1",
      "-",
      ".5",
      "e3",
      "0",
      "01",
      "true",
      "nul",
      " ",
      "\n",
      "\\u00",
      "\\",
      "\u0001",
      "'",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 7 }), (pieces) => {
        const text = pieces.join("");
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        expect(errorOf(text) === "accepted").toBe(valid);
      }),
      { numRuns: 3000 },
    );
  });

  test("every node is the slice that was written", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, null, 1);
        slices(parseJsonText(text), text);
      }),
    );
  });

  test("keeps number text, key order and repeated keys", () => {
    const node = parseJsonText('{"10": 1.0, "9": 12345678901234567890, "a": -0, "9": 1e2}');
    if (node.kind !== "object") throw new Error("not an object");
    expect(node.entries.map(({ key }) => key)).toEqual(["10", "9", "a", "9"]);
    expect(node.entries.map(({ value }) => value.kind === "number" && value.text)).toEqual([
      "1.0",
      "12345678901234567890",
      "-0",
      "1e2",
    ]);
    expect([...uniqueEntries(node).keys()]).toEqual(["10", "9", "a"]);
    expect(jsonMember(node, "9")).toMatchObject({ text: "1e2" });
    expect(jsonMember(node, "b")).toBeUndefined();
  });

  test("a key named __proto__ is a key", () => {
    const plain = jsonToPlain(parseJsonText('{"__proto__": {"x": 1}}')) as Record<string, unknown>;
    expect(Object.keys(plain)).toEqual(["__proto__"]);
    expect(plain.x).toBeUndefined();
  });

  test.each([
    ["", "Invalid JSON at position 0: found the end of the text, expected a value."],
    ['{"a" 1}', 'Invalid JSON at position 5: found "1}", expected `:`.'],
    ["[1] x", 'Invalid JSON at position 4: found "x", expected the end of the text.'],
    ['"a\nb"', /position 2.*control characters must be escaped/],
    ["[".repeat(300), /position 257: .*at most 256 levels/],
  ])("%j is refused with its position", (text, expected) => {
    expect(errorOf(text)).toMatch(expected);
  });
});

describe("numbers as Python prints them", () => {
  test.each([
    [1, "1.0"],
    [-0, "-0.0"],
    [0, "0.0"],
    [0.1, "0.1"],
    [1e15, "1000000000000000.0"],
    [1e16, "1e+16"],
    [1.5e16, "1.5e+16"],
    [123456789012345680, "1.2345678901234568e+17"],
    [0.0001, "0.0001"],
    [0.00001, "1e-05"],
    [1.25e-7, "1.25e-07"],
    [1e100, "1e+100"],
    [5e-324, "5e-324"],
    [-2.5, "-2.5"],
    [Number.POSITIVE_INFINITY, "Infinity"],
    [Number.NEGATIVE_INFINITY, "-Infinity"],
    [Number.NaN, "NaN"],
  ])("%d is %s", (value, expected) => {
    expect(pythonFloatText(value)).toBe(expected);
  });

  test("every double reads back as itself", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(Object.is(Number(pythonFloatText(value)), value)).toBe(true);
      }),
    );
  });

  test("integers keep every digit, -0 is 0, the rest is a double", () => {
    expect(["12345678901234567890", "-0", "-7", "1e2", "1.50"].map(pythonNumberText)).toEqual([
      "12345678901234567890",
      "0",
      "-7",
      "100.0",
      "1.5",
    ]);
  });
});
