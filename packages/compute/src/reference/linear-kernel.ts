/**
 * Linear layers. Weights are [N, K] row-major, as in Hugging Face files.
 *
 * Law: each output is one sequential sum in index order, so a row's result does not depend on the other rows.
 */

/** out[R,N] = x[R,K] weight[N,K]^T + bias[N]. Sums over K in index order. */
export function linearKernel(
  out: Float32Array,
  x: Float32Array,
  weight: Float32Array,
  outputs: number,
  inputs: number,
  bias: Float32Array | null,
): void {
  const rows = x.length / inputs;
  for (let r = 0; r < rows; r += 1) {
    for (let n = 0; n < outputs; n += 1) {
      let sum = 0;
      for (let k = 0; k < inputs; k += 1) sum += x[r * inputs + k] * weight[n * inputs + k];
      out[r * outputs + n] = bias === null ? sum : sum + bias[n];
    }
  }
}

/** gradX[R,K] += gradOut[R,N] weight[N,K]. Sums over N in index order. */
export function linearBackwardInputKernel(
  gradX: Float32Array,
  gradOut: Float32Array,
  weight: Float32Array,
  outputs: number,
  inputs: number,
): void {
  const rows = gradX.length / inputs;
  const sums = new Float64Array(inputs);
  for (let r = 0; r < rows; r += 1) {
    sums.fill(0);
    for (let n = 0; n < outputs; n += 1) {
      const g = gradOut[r * outputs + n];
      for (let k = 0; k < inputs; k += 1) sums[k] += g * weight[n * inputs + k];
    }
    for (let k = 0; k < inputs; k += 1) gradX[r * inputs + k] += sums[k];
  }
}

/** gradWeight[N,K] += gradOut[R,N]^T x[R,K]; gradBias[N] += column sums. Sums over rows in order. */
export function linearBackwardWeightKernel(
  gradWeight: Float32Array,
  gradOut: Float32Array,
  x: Float32Array,
  outputs: number,
  inputs: number,
  gradBias: Float32Array | null,
): void {
  const rows = x.length / inputs;
  const sums = new Float64Array(inputs);
  for (let n = 0; n < outputs; n += 1) {
    sums.fill(0);
    let biasSum = 0;
    for (let r = 0; r < rows; r += 1) {
      const g = gradOut[r * outputs + n];
      biasSum += g;
      for (let k = 0; k < inputs; k += 1) sums[k] += g * x[r * inputs + k];
    }
    for (let k = 0; k < inputs; k += 1) gradWeight[n * inputs + k] += sums[k];
    if (gradBias !== null) gradBias[n] += biasSum;
  }
}
