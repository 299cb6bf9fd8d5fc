/**
 * How far the policy has moved: KL of the sampling policy to a frozen one, on the tokens that were sampled.
 */
import type { TrainablePolicy } from "@gimbal-rl/compute";
import type { TrainingBatch } from "@gimbal-rl/core";
import { klTerm } from "@gimbal-rl/objective";

/**
 * Mean of `klTerm`'s k3 over the sampled tokens. The recorded log-probabilities are those of the policy that sampled.
 *
 * @returns Nats per token, finite and never negative; 0 when there are no tokens.
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
      sum += klTerm(terms.behaviourLogprobs[i] ?? 0, pass.logprobs[i] ?? 0).value;
    }
    count += pass.logprobs.length;
    pass.free();
  }
  return count === 0 ? 0 : sum / count;
}
