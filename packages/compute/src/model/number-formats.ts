/**
 * Conversions between f32 arrays and the little-endian bytes of f32, bf16 and f16.
 *
 * Law: f32 and widening are exact; narrowing to bf16 rounds to nearest, ties to even.
 */

/** Number formats of safetensors files that are read. */
export type FloatFormat = "F32" | "BF16" | "F16";

/** Bytes of one number. */
export const bytesPerNumber: Readonly<Record<FloatFormat, number>> = { F32: 4, BF16: 2, F16: 2 };

function halfToFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Widens bytes to f32. `bytes.byteLength` is a multiple of the format's size. */
export function decodeFloats(bytes: Uint8Array, format: FloatFormat): Float32Array {
  const count = bytes.byteLength / bytesPerNumber[format];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const out = new Float32Array(count);
  switch (format) {
    case "F32": {
      const words = new Uint32Array(out.buffer);
      for (let i = 0; i < count; i += 1) words[i] = view.getUint32(4 * i, true);
      return out;
    }
    case "BF16": {
      const words = new Uint32Array(out.buffer);
      for (let i = 0; i < count; i += 1) words[i] = view.getUint16(2 * i, true) << 16;
      return out;
    }
    case "F16":
      for (let i = 0; i < count; i += 1) out[i] = halfToFloat(view.getUint16(2 * i, true));
      return out;
    default:
      return format satisfies never;
  }
}

/** Writes f32 values as f32 or bf16 bytes. */
export function encodeFloats(values: Float32Array, format: "F32" | "BF16"): Uint8Array {
  const bytes = new Uint8Array(values.length * bytesPerNumber[format]);
  const view = new DataView(bytes.buffer);
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < values.length; i += 1) {
    const word = words[i];
    if (format === "F32") {
      view.setUint32(4 * i, word, true);
    } else if (Number.isNaN(values[i])) {
      view.setUint16(2 * i, 0x7fc0, true);
    } else {
      view.setUint16(2 * i, (word + 0x7fff + ((word >>> 16) & 1)) >>> 16, true);
    }
  }
  return bytes;
}
