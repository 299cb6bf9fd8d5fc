import type { TrainablePolicy } from "@gimbal-rl/compute";
import { asId, type GroupId, type TrainingBatch } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { measureReferenceKl } from "./reference-kl.js";

function batchOf(behaviourLogprobs: readonly number[]): TrainingBatch {
  const count = behaviourLogprobs.length;
  const none = new Int32Array(count);
  return {
    groupId: asId<GroupId>("g"),
    trie: {
      ...{ tokenIds: none, positions: none, parentRows: none },
      ...{ segmentStarts: none, segmentParents: none },
    },
    terms: {
      ...{ rows: none, targetIds: none, attempts: none },
      advantages: new Float32Array(count),
      behaviourLogprobs: Float32Array.from(behaviourLogprobs),
      weights: new Float32Array(count).fill(1),
    },
    temperature: 1,
  };
}

/** A reference that answers the given log-probabilities, batch by batch, and counts passes that were not freed. */
function referenceOf(answers: readonly (readonly number[])[]): {
  readonly policy: TrainablePolicy;
  readonly open: () => number;
} {
  let next = 0;
  let open = 0;
  const forward: TrainablePolicy["forward"] = async () => {
    const logprobs = Float32Array.from(answers[next] ?? []);
    next += 1;
    open += 1;
    const free = (): void => {
      open -= 1;
    };
    return { rows: 0, logprobs, backward: async () => {}, free };
  };
  return { policy: { forward } as unknown as TrainablePolicy, open: () => open };
}

describe("measureReferenceKl", () => {
  it("is 0 for equal log-probabilities and for no tokens", async () => {
    const { policy } = referenceOf([[-1, -2]]);
    expect(await measureReferenceKl(policy, [batchOf([-1, -2])])).toBe(0);
    expect(await measureReferenceKl(policy, [])).toBe(0);
  });

  it("is the mean of e^x - 1 - x over the tokens of all batches, and frees its passes", async () => {
    const { open, policy } = referenceOf([[-1, -1], [-2]]);
    const kl = await measureReferenceKl(policy, [batchOf([-2, -1]), batchOf([-1])]);
    expect(kl).toBeCloseTo((Math.E - 2 + 0 + Math.exp(-1)) / 3, 6);
    expect(open()).toBe(0);
  });

  it("stays finite where the policy has left the reference far behind", async () => {
    const { policy } = referenceOf([[-1]]);
    const kl = await measureReferenceKl(policy, [batchOf([-2000])]);
    expect(kl).toBeGreaterThan(1e8);
    expect(kl).toBeLessThan(Number.POSITIVE_INFINITY);
  });
});
