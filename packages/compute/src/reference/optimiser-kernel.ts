/**
 * AdamW with decoupled weight decay (1711.05101, algorithm 2) and the sum of squares for clipping.
 */
import type { AdamWOptions } from "../backend.js";

/** out[0] += sum of x^2, in index order. */
export function addSumOfSquaresKernel(out: Float32Array, x: Float32Array): void {
  let sum = 0;
  for (let i = 0; i < x.length; i += 1) sum += x[i] * x[i];
  out[0] += sum;
}

/**
 * With g = gradientScale * gradient: m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2;
 * weight -= learningRate * (m / (1 - b1^step) / (sqrt(v / (1 - b2^step)) + epsilon) + weightDecay * weight).
 */
export function adamWKernel(
  weight: Float32Array,
  gradient: Float32Array,
  firstMoment: Float32Array,
  secondMoment: Float32Array,
  options: AdamWOptions,
): void {
  const { learningRate, beta1, beta2, epsilon, weightDecay, step, gradientScale } = options;
  const correction1 = 1 - beta1 ** step;
  const correction2 = 1 - beta2 ** step;
  for (let i = 0; i < weight.length; i += 1) {
    const g = gradient[i] * gradientScale;
    firstMoment[i] = beta1 * firstMoment[i] + (1 - beta1) * g;
    secondMoment[i] = beta2 * secondMoment[i] + (1 - beta2) * g * g;
    const direction =
      firstMoment[i] / correction1 / (Math.sqrt(secondMoment[i] / correction2) + epsilon);
    weight[i] -= learningRate * (direction + weightDecay * weight[i]);
  }
}
