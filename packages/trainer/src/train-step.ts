/**
 * One policy-gradient step over a policy: forward, loss, backward, clip, AdamW.
 *
 * Laws: all micro-batches of one update share one denominator, so cutting a batch differently changes cost and not the
 * loss; the mismatch is measured with the weights that the step started with. Same weights, same batches, same options:
 * same weights after, bit for bit.
 */
import type { TrainablePolicy, UpdateOptions } from "@gimbal-rl/compute";
import { GimbalError, type TrainingBatch } from "@gimbal-rl/core";
import {
  grpo,
  type PolicyLossOptions,
  type PolicyMetrics,
  policyLoss,
  policyMetrics,
  sumOfWeights,
} from "@gimbal-rl/objective";

/** Settings of one step. */
export interface TrainStepOptions extends UpdateOptions {
  /** Default: the `grpo` preset's. */
  readonly objective?: PolicyLossOptions;
  /** Passes over the batches. Default 1. */
  readonly epochs?: number;
  /** Updates per pass; batches are dealt out in order, never cut. Default 1. */
  readonly minibatches?: number;
  /** The frozen policy of the KL term; needed when its coefficient is not 0. */
  readonly reference?: TrainablePolicy;
}

/** What one step did. The policy metrics are those of the last pass. */
export interface TrainStepMetrics extends Omit<PolicyMetrics, "mismatchMax" | "mismatchMean"> {
  readonly loss: number;
  /** Largest global gradient norm before clipping, frozen parameters left out; 0 when nothing was updated. */
  readonly gradientNorm: number;
  /** Optimiser updates done; 0 when no term carries a gradient. */
  readonly updates: number;
  readonly learningRate: number;
  /** Micro-batches with terms. */
  readonly batches: number;
  /** Rows computed in one forward pass over all batches: the unique tokens. */
  readonly rows: number;
  /** max |trainer - recorded| log-probability, in nats, before any update. */
  readonly logprobMismatchMax: number;
  readonly logprobMismatchMean: number;
}

function concatenate(parts: readonly Float32Array[]): Float32Array {
  const whole = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Deals items into consecutive parts of about equal numbers of terms. */
function deal(batches: readonly TrainingBatch[], count: number): number[][] {
  const total = batches.reduce((sum, batch) => sum + batch.terms.rows.length, 0);
  const parts: number[][] = [[]];
  let seen = 0;
  batches.forEach((batch, index) => {
    if (seen >= (total * parts.length) / count && parts.length < count) parts.push([]);
    parts[parts.length - 1].push(index);
    seen += batch.terms.rows.length;
  });
  return parts;
}

async function measure(
  policy: TrainablePolicy,
  batches: readonly TrainingBatch[],
): Promise<Float32Array[]> {
  const measured: Float32Array[] = [];
  for (const { temperature, terms, trie } of batches) {
    const pass = await policy.forward(trie, terms, { temperature, keepForBackward: false });
    measured.push(pass.logprobs.slice());
    pass.free();
  }
  return measured;
}

/** @throws {GimbalError} `non-finite`; the policy must then be reloaded from a checkpoint. */
export function assertFinite(name: string, value: number): void {
  if (Number.isFinite(value)) return;
  throw new GimbalError(
    "non-finite",
    `The ${name} is ${value}; expected a finite number. Resume from the last checkpoint with a lower learning rate.`,
    { boundary: "compute" },
  );
}

/**
 * Trains on micro-batches of one step.
 *
 * A step whose terms carry no gradient (all advantages 0, no KL) updates nothing, not even by momentum.
 *
 * @param batches - Micro-batches, as from `buildTrainingBatches`; they are one global batch per pass and minibatch.
 * @throws {GimbalError} `config-invalid` for a KL without a reference, `non-finite` when the loss or the gradient is
 * not a number; after the latter the policy must be reloaded.
 * @example
 * const metrics = await trainStep(policy, batches, { learningRate: 1e-4, maxGradientNorm: 1 });
 * metrics.logprobMismatchMax; // 0 when engine and trainer share kernels
 */
export async function trainStep(
  policy: TrainablePolicy,
  batches: readonly TrainingBatch[],
  options: TrainStepOptions,
): Promise<TrainStepMetrics> {
  const { epochs = 1, minibatches = 1, objective = grpo.policy, reference, ...update } = options;
  const active = batches.filter(({ terms }) => terms.rows.length > 0);
  const withKl = objective.klCoefficient !== 0;
  if (withKl && reference === undefined) {
    throw new GimbalError(
      "config-invalid",
      `The KL coefficient is ${objective.klCoefficient} and no reference policy was given. Pass options.reference, or set the coefficient to 0.`,
    );
  }
  const referenceLogprobs = reference && withKl ? await measure(reference, active) : undefined;
  const parts = deal(active, minibatches);
  // With one update per pass the first forward of each batch is itself before any update.
  let initial = parts.length === 1 ? undefined : await measure(policy, active);
  let latest: Float32Array[] = [];
  let rows = 0;
  let loss = 0;
  let updates = 0;
  let gradientNorm = 0;
  for (let epoch = 0; epoch < epochs; epoch += 1) {
    latest = [];
    rows = 0;
    loss = 0;
    for (const part of parts) {
      const denominator = sumOfWeights(part.map((index) => active[index].terms.weights));
      let hasGradient = false;
      for (const index of part) {
        const { temperature, terms, trie } = active[index];
        const keepForBackward = withKl || terms.advantages.some((advantage) => advantage !== 0);
        const pass = await policy.forward(trie, terms, { temperature, keepForBackward });
        const logprobs = pass.logprobs.slice();
        const result = policyLoss({
          logprobs,
          ...terms,
          ...(referenceLogprobs && { referenceLogprobs: referenceLogprobs[index] }),
          denominator,
          options: objective,
        });
        assertFinite("loss", result.loss);
        latest.push(logprobs);
        rows += pass.rows;
        loss += result.loss;
        if (keepForBackward) await pass.backward(result.gradLogprobs);
        else pass.free();
        hasGradient ||= keepForBackward;
      }
      if (!hasGradient) continue;
      const done = await policy.update(update);
      assertFinite("gradient norm", done.gradientNorm);
      gradientNorm = Math.max(gradientNorm, done.gradientNorm);
      updates += 1;
    }
    initial ??= latest;
  }
  const all = (pick: (batch: TrainingBatch) => Float32Array): Float32Array =>
    concatenate(active.map(pick));
  const terms = {
    behaviourLogprobs: all((batch) => batch.terms.behaviourLogprobs),
    advantages: all((batch) => batch.terms.advantages),
    weights: all((batch) => batch.terms.weights),
    ...(referenceLogprobs && { referenceLogprobs: concatenate(referenceLogprobs) }),
    options: objective,
  };
  const before = policyMetrics({ ...terms, logprobs: concatenate(initial ?? []) });
  const {
    mismatchMax: _,
    mismatchMean: __,
    ...metrics
  } = policyMetrics({
    ...terms,
    logprobs: concatenate(latest),
  });
  return {
    ...metrics,
    loss: loss / Math.max(1, parts.length),
    gradientNorm,
    updates,
    learningRate: options.learningRate,
    batches: active.length,
    rows,
    logprobMismatchMax: before.mismatchMax,
    logprobMismatchMean: before.mismatchMean,
  };
}
