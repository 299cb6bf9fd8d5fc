/**
 * Root-mean-square normalisation (1910.07467), per row of `width` values.
 */

/** out = x * weight * inverseRms, with inverseRms = 1 / sqrt(mean(x^2) + epsilon) per row. */
export function rmsNormKernel(
  out: Float32Array,
  inverseRms: Float32Array,
  x: Float32Array,
  weight: Float32Array,
  width: number,
  epsilon: number,
): void {
  for (let r = 0; r < inverseRms.length; r += 1) {
    const base = r * width;
    let squares = 0;
    for (let j = 0; j < width; j += 1) squares += x[base + j] * x[base + j];
    inverseRms[r] = 1 / Math.sqrt(squares / width + epsilon);
    for (let j = 0; j < width; j += 1) out[base + j] = x[base + j] * inverseRms[r] * weight[j];
  }
}

/**
 * With s = inverseRms and g = gradOut * weight:
 * gradX += s * g - x * s^3 / width * sum(g * x); gradWeight += gradOut * x * s, rows in order.
 */
export function rmsNormBackwardKernel(
  gradX: Float32Array,
  gradWeight: Float32Array,
  gradOut: Float32Array,
  x: Float32Array,
  inverseRms: Float32Array,
  weight: Float32Array,
  width: number,
): void {
  const weightSums = new Float64Array(width);
  for (let r = 0; r < inverseRms.length; r += 1) {
    const base = r * width;
    const inverse = inverseRms[r];
    let dot = 0;
    for (let j = 0; j < width; j += 1) dot += gradOut[base + j] * weight[j] * x[base + j];
    const pull = (dot * inverse * inverse * inverse) / width;
    for (let j = 0; j < width; j += 1) {
      gradX[base + j] += gradOut[base + j] * weight[j] * inverse - x[base + j] * pull;
      weightSums[j] += gradOut[base + j] * x[base + j] * inverse;
    }
  }
  for (let j = 0; j < width; j += 1) gradWeight[j] += weightSums[j];
}
