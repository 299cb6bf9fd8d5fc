/**
 * Operations on rows and single elements: lookup, scatter, rotary embedding, SwiGLU.
 */

/** out[r,:] = source[indices[r],:]. */
export function gatherRowsKernel(
  out: Float32Array,
  source: Float32Array,
  indices: Int32Array,
  width: number,
): void {
  for (let r = 0; r < indices.length; r += 1) {
    for (let j = 0; j < width; j += 1) out[r * width + j] = source[indices[r] * width + j];
  }
}

/** target[indices[r],:] += source[r,:], in row order. */
export function scatterAddRowsKernel(
  target: Float32Array,
  source: Float32Array,
  indices: Int32Array,
  width: number,
): void {
  for (let r = 0; r < indices.length; r += 1) {
    for (let j = 0; j < width; j += 1) target[indices[r] * width + j] += source[r * width + j];
  }
}

/** Copies rows of `width` to the rows named by `slots`. */
export function writeRowsKernel(
  target: Float32Array,
  source: Float32Array,
  slots: Int32Array,
  width: number,
): void {
  for (let r = 0; r < slots.length; r += 1) {
    for (let j = 0; j < width; j += 1) target[slots[r] * width + j] = source[r * width + j];
  }
}

/**
 * Rotary embedding (2104.09864) in place, half-split convention: with (a, b) the i-th values of the two halves of a
 * head, (a, b) becomes (a cos - b sin, b cos + a sin); `inverse` turns back by the same angle.
 */
export function ropeKernel(
  x: Float32Array,
  positions: Int32Array,
  cosSin: Float32Array,
  heads: number,
  headWidth: number,
  inverse: boolean,
): void {
  const half = headWidth / 2;
  for (let r = 0; r < positions.length; r += 1) {
    const table = positions[r] * headWidth;
    for (let h = 0; h < heads; h += 1) {
      const base = (r * heads + h) * headWidth;
      for (let i = 0; i < half; i += 1) {
        const cos = cosSin[table + i];
        const sin = inverse ? -cosSin[table + half + i] : cosSin[table + half + i];
        const a = x[base + i];
        const b = x[base + half + i];
        x[base + i] = a * cos - b * sin;
        x[base + half + i] = b * cos + a * sin;
      }
    }
  }
}

/** out = gate * sigmoid(gate) * up (2002.05202). */
export function swigluKernel(out: Float32Array, gate: Float32Array, up: Float32Array): void {
  for (let i = 0; i < out.length; i += 1) out[i] = (gate[i] / (1 + Math.exp(-gate[i]))) * up[i];
}

/** With s = sigmoid(gate): gradUp += g gate s; gradGate += g up s (1 + gate (1 - s)). */
export function swigluBackwardKernel(
  gradGate: Float32Array,
  gradUp: Float32Array,
  gradOut: Float32Array,
  gate: Float32Array,
  up: Float32Array,
): void {
  for (let i = 0; i < gradOut.length; i += 1) {
    const sigmoid = 1 / (1 + Math.exp(-gate[i]));
    gradUp[i] += gradOut[i] * gate[i] * sigmoid;
    gradGate[i] += gradOut[i] * up[i] * sigmoid * (1 + gate[i] * (1 - sigmoid));
  }
}
