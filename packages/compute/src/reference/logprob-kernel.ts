/**
 * Log-probabilities over the vocabulary, their backward, and sampling.
 *
 * Law: `sample` and `gatherLogprobs` give the same f32 number for the same logits. Temperature 0 means greedy choice;
 * its log-probabilities are those at temperature 1.
 */

function divisor(temperature: number): number {
  return temperature === 0 ? 1 : temperature;
}

/** logSumExp[R] of logits[R,V] / temperature: the maximum first, then the sum in index order. */
export function logSumExpKernel(
  out: Float32Array,
  logits: Float32Array,
  vocabulary: number,
  temperature: number,
): void {
  const t = divisor(temperature);
  for (let r = 0; r < out.length; r += 1) {
    const base = r * vocabulary;
    let maximum = Number.NEGATIVE_INFINITY;
    for (let v = 0; v < vocabulary; v += 1) maximum = Math.max(maximum, logits[base + v] / t);
    let total = 0;
    for (let v = 0; v < vocabulary; v += 1) total += Math.exp(logits[base + v] / t - maximum);
    out[r] = maximum + Math.log(total);
  }
}

/** out[t] = logits[rows[t], targets[t]] / temperature - logSumExp[rows[t]]. */
export function gatherLogprobsKernel(
  out: Float32Array,
  logits: Float32Array,
  logSumExp: Float32Array,
  rows: Int32Array,
  targets: Int32Array,
  vocabulary: number,
  temperature: number,
): void {
  const t = divisor(temperature);
  for (let i = 0; i < out.length; i += 1) {
    out[i] = logits[rows[i] * vocabulary + targets[i]] / t - logSumExp[rows[i]];
  }
}

/** gradLogits[r,v] = sum over terms t of row r of gradLogprobs[t] * ([v = target] - p[v]) / temperature. */
export function logprobsBackwardKernel(
  gradLogits: Float32Array,
  gradLogprobs: Float32Array,
  logits: Float32Array,
  logSumExp: Float32Array,
  rows: Int32Array,
  targets: Int32Array,
  vocabulary: number,
  temperature: number,
): void {
  const t = divisor(temperature);
  const totals = new Float64Array(logSumExp.length);
  for (let i = 0; i < rows.length; i += 1) totals[rows[i]] += gradLogprobs[i];
  for (let r = 0; r < totals.length; r += 1) {
    const base = r * vocabulary;
    for (let v = 0; v < vocabulary; v += 1) {
      gradLogits[base + v] = (-totals[r] * Math.exp(logits[base + v] / t - logSumExp[r])) / t;
    }
  }
  for (let i = 0; i < rows.length; i += 1) {
    gradLogits[rows[i] * vocabulary + targets[i]] += gradLogprobs[i] / t;
  }
}

/** One id per row: the first whose cumulative probability exceeds uniforms[r]; temperature 0: the first maximum. */
export function sampleKernel(
  ids: Int32Array,
  logprobs: Float32Array,
  logits: Float32Array,
  uniforms: Float32Array,
  vocabulary: number,
  temperature: number,
): void {
  const t = divisor(temperature);
  const sums = new Float32Array(ids.length);
  logSumExpKernel(sums, logits, vocabulary, temperature);
  for (let r = 0; r < ids.length; r += 1) {
    const base = r * vocabulary;
    // Rounding may leave the last cumulative sum below the uniform number: then the last id is taken.
    let id = vocabulary - 1;
    if (temperature === 0) {
      id = 0;
      for (let v = 1; v < vocabulary; v += 1) if (logits[base + v] > logits[base + id]) id = v;
    } else {
      let cumulative = 0;
      for (let v = 0; v < vocabulary; v += 1) {
        cumulative += Math.exp(logits[base + v] / t - sums[r]);
        if (cumulative > uniforms[r]) {
          id = v;
          break;
        }
      }
    }
    ids[r] = id;
    logprobs[r] = logits[base + id] / t - sums[r];
  }
}
