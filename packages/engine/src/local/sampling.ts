/**
 * Sampling one id for each call from the logits of a step.
 *
 * Law: what a call gets depends only on its own logits, uniform number and parameters, never on the calls it is
 * sampled together with. Log-probabilities are those of the distribution that was sampled from, rounded to f32.
 */
import type { Backend, Tensor } from "@gimbal-rl/compute";
import { GimbalError, type SamplingParameters } from "@gimbal-rl/core";

/** One id wanted. */
export interface Draw {
  /** Row of the logits. */
  readonly row: number;
  readonly sampling: SamplingParameters;
  /** Uniform in [0, 1), exact in f32. */
  readonly uniform: number;
}

/** One id sampled. */
export interface Drawn {
  readonly id: number;
  readonly logprob: number;
}

/** A 32-bit uniform cut to 24 bits, so that it is exact in f32 and cannot round up to 1. */
export function toSinglePrecisionUniform(uniform: number): number {
  return Math.floor(uniform * 0x100_0000) / 0x100_0000;
}

/**
 * Samples all draws of a step.
 * @param logits - [L, V] with `rowCount` = L.
 * @throws {GimbalError} `engine-failed` when a distribution is not finite.
 */
export async function drawAll(
  backend: Backend,
  logits: Tensor,
  rowCount: number,
  vocabulary: number,
  draws: readonly Draw[],
): Promise<Drawn[]> {
  const drawn: Drawn[] = new Array(draws.length);
  const groups = new Map<number, number[]>();
  for (let i = 0; i < draws.length; i += 1) {
    const { sampling, uniform, row } = draws[i];
    if (isTruncated(sampling)) {
      const values = await backend.read(logits, row * vocabulary, vocabulary);
      drawn[i] = drawTruncated(values, sampling, uniform);
      continue;
    }
    const group = groups.get(sampling.temperature);
    if (group === undefined) groups.set(sampling.temperature, [i]);
    else group.push(i);
  }
  for (const [temperature, members] of groups) {
    const whole =
      members.length === rowCount && members.every((member, row) => draws[member].row === row);
    const source = whole
      ? logits
      : gather(
          backend,
          logits,
          vocabulary,
          members.map((member) => draws[member].row),
        );
    const ids = new Int32Array(members.length);
    const logprobs = new Float32Array(members.length);
    const uniforms = Float32Array.from(members, (member) => draws[member].uniform);
    try {
      await backend.sample(ids, logprobs, source, uniforms, vocabulary, temperature);
    } finally {
      if (source !== logits) backend.free(source);
    }
    members.forEach((member, i) => {
      drawn[member] = { id: ids[i], logprob: logprobs[i] };
    });
  }
  for (const { id, logprob } of drawn) checkDrawn(id, logprob, vocabulary);
  return drawn;
}

/** Whether a sampling keeps only some candidates. Greedy sampling never does: the first maximum always stays. */
function isTruncated({ temperature, topP, topK }: SamplingParameters): boolean {
  return temperature > 0 && (topK > 0 || topP < 1);
}

/**
 * Samples from the `topK` most likely ids, cut to the smallest set that holds `topP` of their mass, renormalised.
 * Among equal logits the lower id counts as more likely. Sums run in f64 over ids in index order.
 */
export function drawTruncated(
  logitsV: Float32Array,
  { temperature, topP, topK }: SamplingParameters,
  uniform: number,
): Drawn {
  const sortedV = logitsV.slice().sort();
  const size = sortedV.length;
  const maximum = sortedV[size - 1];
  const mass = (logit: number): number => Math.exp((logit - maximum) / temperature);
  let kept = topK > 0 ? Math.min(topK, size) : size;
  if (topP < 1) {
    let total = 0;
    for (let i = 0; i < kept; i += 1) total += mass(sortedV[size - 1 - i]);
    let sum = 0;
    let nucleus = 0;
    while (nucleus < kept && (nucleus === 0 || sum < topP * total)) {
      sum += mass(sortedV[size - 1 - nucleus]);
      nucleus += 1;
    }
    kept = nucleus;
  }
  const threshold = sortedV[size - kept];
  let ties = 0;
  while (ties < kept && sortedV[size - kept + ties] === threshold) ties += 1;
  const ids: number[] = [];
  let total = 0;
  for (let id = 0; id < size; id += 1) {
    const logit = logitsV[id];
    if (logit < threshold || (logit === threshold && ties === 0)) continue;
    if (logit === threshold) ties -= 1;
    ids.push(id);
    total += mass(logit);
  }
  let cumulative = 0;
  for (const id of ids) {
    cumulative += mass(logitsV[id]);
    if (cumulative > uniform * total) {
      return { id, logprob: Math.fround(Math.log(mass(logitsV[id]) / total)) };
    }
  }
  const last = ids[ids.length - 1] ?? -1;
  return { id: last, logprob: Math.fround(Math.log(mass(logitsV[last]) / total)) };
}

function gather(backend: Backend, logits: Tensor, width: number, rows: number[]): Tensor {
  const indices = backend.allocateInts(Int32Array.from(rows));
  const out = backend.allocate(rows.length * width);
  backend.gatherRows(out, logits, indices, width);
  backend.free(indices);
  return out;
}

function checkDrawn(id: number, logprob: number, vocabulary: number): void {
  if (Number.isFinite(logprob) && id >= 0 && id < vocabulary) return;
  throw new GimbalError(
    "engine-failed",
    `Sampling gave id ${id} with log-probability ${logprob}, expected an id below ${vocabulary} and a finite number. The weights are probably not finite; load an earlier checkpoint.`,
    { boundary: "compute", details: { id, logprob } },
  );
}
