import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createLineSplitter } from "./line-splitter.js";

function split(chunks: readonly Uint8Array[]): string[] {
  const lines: string[] = [];
  const splitter = createLineSplitter((line) => lines.push(line));
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return lines;
}

describe("createLineSplitter", () => {
  it("cuts at LF only and drops a carriage return before it", () => {
    const text = 'a\r\n{"x":"\u2028"}\n\nlast';
    expect(split([new TextEncoder().encode(text)])).toEqual(["a", '{"x":"\u2028"}', "", "last"]);
  });

  it("gives the same lines however the bytes are cut", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "\n", "é", "\u2028", "😀", "\r") });
    fc.assert(
      fc.property(text, fc.array(fc.nat(40)), (value, cuts) => {
        const bytes = new TextEncoder().encode(value);
        const chunks: Uint8Array[] = [];
        let start = 0;
        for (const cut of cuts) {
          chunks.push(bytes.subarray(start, start + cut));
          start += cut;
        }
        chunks.push(bytes.subarray(start));
        expect(split(chunks)).toEqual(split([bytes]));
      }),
    );
  });
});
