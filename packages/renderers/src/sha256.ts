/**
 * SHA-256 (FIPS 180-4) of text, synchronous and without platform modules, for fingerprints.
 */

const roundConstants: Uint32Array = primeFractions(64, 1 / 3);

/** First 32 fractional bits of the `power`-th root of the first primes. */
function primeFractions(count: number, power: number): Uint32Array {
  const result = new Uint32Array(count);
  let found = 0;
  for (let candidate = 2; found < count; candidate += 1) {
    let prime = true;
    for (let factor = 2; factor * factor <= candidate; factor += 1) {
      if (candidate % factor === 0) prime = false;
    }
    if (!prime) continue;
    const root = candidate ** power;
    result[found] = Math.floor((root - Math.floor(root)) * 0x1_0000_0000);
    found += 1;
  }
  return result;
}

/** Hex digest of the UTF-8 bytes of a text. */
export function sha256Hex(text: string): string {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor((bytes.length * 8) / 0x1_0000_0000));
  view.setUint32(padded.length - 4, (bytes.length * 8) >>> 0);

  const state = primeFractions(8, 1 / 2);
  const schedule = new Uint32Array(64);
  for (let offset = 0; offset < padded.length; offset += 64) {
    compress(state, schedule, view, offset);
  }
  return Array.from(state, (word) => word.toString(16).padStart(8, "0")).join("");
}

function compress(state: Uint32Array, schedule: Uint32Array, view: DataView, offset: number): void {
  const rotate = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits));
  const at = (array: Uint32Array, index: number): number => array[index] ?? 0;
  for (let i = 0; i < 16; i += 1) schedule[i] = view.getUint32(offset + i * 4);
  for (let i = 16; i < 64; i += 1) {
    const early = at(schedule, i - 15);
    const late = at(schedule, i - 2);
    const sigma0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const sigma1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    schedule[i] = at(schedule, i - 16) + sigma0 + at(schedule, i - 7) + sigma1;
  }
  let [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = state;
  for (let i = 0; i < 64; i += 1) {
    const sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const choice = (e & f) ^ (~e & g);
    const first = (h + sum1 + choice + at(roundConstants, i) + at(schedule, i)) | 0;
    const sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    const majority = (a & b) ^ (a & c) ^ (b & c);
    const second = (sum0 + majority) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + first) | 0;
    d = c;
    c = b;
    b = a;
    a = (first + second) | 0;
  }
  const next = [a, b, c, d, e, f, g, h];
  for (let i = 0; i < 8; i += 1) state[i] = at(state, i) + (next[i] ?? 0);
}
