/**
 * How far the policy has moved: KL of the sampling policy to a frozen one, on the tokens that were sampled.
 */
import type { TrainablePolicy } from "@gimbal-rl/compute";
import type { TrainingBatch } from "@gimbal-rl/core";

/**
 * Mean of k3 = e^x - 1 - x with x = log pi_ref - log pi over the sampled tokens (Schulman's note), which estimates
 * KL(pi || pi_ref) without bias and is never negative. The recorded log-probabilities are pi's own.
 *
 * @returns Nats per token; 0 when there are no tokens.
 */
export async function measureReferenceKl(
  reference: TrainablePolicy,
  batches: readonly TrainingBatch[],
): Promise<number> {
  let sum = 0;
  let count = 0;
  for (const { temperature, terms, trie } of batches) {
    const pass = await reference.forward(trie, terms, { temperature, keepForBackward: false });
    for (let i = 0; i < pass.logprobs.length; i += 1) {
      const x = (pass.logprobs[i] ?? 0) - (terms.behaviourLogprobs[i] ?? 0);
      sum += Math.exp(x) - 1 - x;
    }
    count += pass.logprobs.length;
    pass.free();
  }
  return count === 0 ? 0 : sum / count;
}
