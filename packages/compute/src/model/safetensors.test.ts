import { GimbalError } from "@gimbal-rl/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeFloats, encodeFloats } from "./number-formats.js";
import { encodeSafetensors, readSafetensors } from "./safetensors.js";

async function encode(
  tensors: Readonly<
    Record<string, { readonly shape: readonly number[]; readonly values: Float32Array }>
  >,
  format: "F32" | "BF16" = "F32",
): Promise<Uint8Array> {
  const list = Object.entries(tensors).map(([name, { shape, values }]) => ({
    name,
    shape,
    read: () => Promise.resolve(values),
  }));
  const pieces: Uint8Array[] = [];
  for await (const piece of encodeSafetensors(list, format, { step: "3" })) pieces.push(piece);
  return Uint8Array.from(pieces.flatMap((piece) => [...piece]));
}

/** A file with a header of our choice. */
function file(header: unknown, data: Uint8Array): Uint8Array {
  const json = new TextEncoder().encode(
    typeof header === "string" ? header : JSON.stringify(header),
  );
  const bytes = new Uint8Array(8 + json.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  bytes.set(data, 8 + json.length);
  return bytes;
}

describe("safetensors", () => {
  it("written and read is the same, bit for bit, names, shapes and metadata included", () =>
    fc.assert(
      fc.asyncProperty(
        fc.dictionary(
          fc.string({ minLength: 1 }).filter((name) => !name.startsWith("__")),
          fc.float32Array({ minLength: 1, maxLength: 9 }),
          { minKeys: 1, maxKeys: 4 },
        ),
        async (values) => {
          const tensors = Object.fromEntries(
            Object.entries(values).map(([name, v]) => [name, { shape: [v.length, 1], values: v }]),
          );
          const source = readSafetensors(await encode(tensors));
          expect(source.metadata).toEqual({ format: "pt", step: "3" });
          expect([...source.shapes.keys()].sort()).toEqual(Object.keys(values).sort());
          for (const [name, expected] of Object.entries(values)) {
            expect(source.shapes.get(name)).toEqual([expected.length, 1]);
            const bits = (v: Float32Array) => [...new Uint8Array(v.slice().buffer)];
            expect(bits(await source.read(name))).toEqual(bits(expected));
          }
        },
      ),
      { numRuns: 50 },
    ));

  it("cut at any byte, or with any header byte damaged, is refused or reads the same names", async () => {
    const bytes = await encode({
      a: { shape: [2, 3], values: Float32Array.of(1, 2, 3, 4, 5, 6) },
      b: { shape: [1], values: Float32Array.of(7) },
    });
    const codeOf = (damaged: Uint8Array): string => {
      try {
        readSafetensors(damaged);
        return "accepted";
      } catch (error) {
        return GimbalError.is(error) && !error.message.includes("\n") ? error.code : String(error);
      }
    };
    for (let length = 0; length < bytes.length; length += 1)
      expect(codeOf(bytes.subarray(0, length))).toBe("model-invalid");
    expect(codeOf(Uint8Array.of(...bytes, 0))).toBe("model-invalid");
    for (let i = 0; i < bytes.length - 28; i += 1) {
      const damaged = bytes.slice();
      damaged[i] ^= 0x10;
      expect(["model-invalid", "accepted"]).toContain(codeOf(damaged));
    }
  });

  it.each([
    [
      "a gap",
      { a: { dtype: "F32", shape: [1], data_offsets: [4, 8] } },
      /leaves a gap or overlaps/,
    ],
    [
      "a wrong size",
      { a: { dtype: "F32", shape: [3], data_offsets: [0, 8] } },
      /holds 8 bytes, expected 12/,
    ],
    [
      "an unknown dtype",
      { a: { dtype: "I64", shape: [1], data_offsets: [0, 8] } },
      /dtype I64; supported are F32/,
    ],
    [
      "a negative size",
      { a: { dtype: "F32", shape: [-2], data_offsets: [0, 8] } },
      /malformed header entry/,
    ],
    ["no entries", {}, /found 8 bytes of data, expected 0/],
    ["a header that is no JSON", "nonsense", /is not JSON/],
    ["null entries", { a: null }, /malformed header entry/],
  ])("with %s is refused", (_name, header, message) => {
    expect(() => readSafetensors(file(header, new Uint8Array(8)))).toThrowError(message);
  });

  it("refuses a header longer than the file without allocating it", () => {
    const bytes = new Uint8Array(16).fill(0xff);
    expect(() => readSafetensors(bytes)).toThrowError(/found a header of/);
  });
});

describe("number formats", () => {
  it("widen f16 exactly", () => {
    const halves = Uint16Array.of(0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0001, 0x03ff, 0x3555);
    const values = decodeFloats(new Uint8Array(halves.buffer), "F16");
    expect([...values]).toEqual([
      0,
      -0,
      1,
      -2,
      65504,
      2 ** -24,
      Math.fround(1023 * 2 ** -24),
      Math.fround(0.333251953125),
    ]);
    const special = Uint16Array.of(0x7c00, 0xfc00, 0x7e00);
    expect([...decodeFloats(new Uint8Array(special.buffer), "F16")]).toEqual([
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.NaN,
    ]);
  });

  it("round f32 to the nearest bf16, ties to even", () => {
    const neighbours = (value: number): readonly [number, number] => {
      const words = new Uint32Array(Float32Array.of(value).buffer);
      const low = Uint32Array.of(words[0] & 0xffff0000);
      const high = Uint32Array.of((words[0] & 0xffff0000) + 0x10000);
      return [new Float32Array(low.buffer)[0], new Float32Array(high.buffer)[0]];
    };
    fc.assert(
      fc.property(
        fc.float({ noNaN: true, noDefaultInfinity: true, max: 2 ** 120, min: -(2 ** 120) }),
        (value) => {
          const rounded = decodeFloats(encodeFloats(Float32Array.of(value), "BF16"), "BF16")[0];
          const [low, high] = neighbours(value);
          const best = Math.abs(value - low) <= Math.abs(high - value) ? low : high;
          expect(Math.abs(rounded - value)).toBe(Math.abs(best - value));
        },
      ),
    );
    // 1 + 2^-8 lies halfway: the even neighbour is 1; 1 + 3 * 2^-8 goes up.
    const ties = Float32Array.of(1 + 2 ** -8, 1 + 3 * 2 ** -8);
    expect([...decodeFloats(encodeFloats(ties, "BF16"), "BF16")]).toEqual([1, 1 + 2 ** -6]);
  });
});
