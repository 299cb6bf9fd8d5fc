/**
 * Makes CapturedCalls for tests, and a random attempt: an agent that continues, repeats, forks and starts anew.
 */
import {
  type AttemptId,
  asId,
  type CallId,
  type CapturedCall,
  createRandom,
} from "@gimbal-rl/core";
import { callFromTokens } from "../src/call-from-tokens.js";

/** The fields that graph reads; the rest is filled in so that the call is valid. */
export type CallFields = Partial<CapturedCall> & {
  readonly promptIds: readonly number[];
  readonly sampledIds: readonly number[];
};

/** A valid call with the given ids; log-probabilities tell calls and tokens apart. */
export function makeCall(index: number, fields: CallFields): CapturedCall {
  return callFromTokens({
    index,
    attemptId: asId<AttemptId>("attempt"),
    logprobs: fields.sampledIds.map((id, i) =>
      Math.fround(-0.01 * (id + 1) - 0.001 * i - index * 1e-4),
    ),
    startedAtMs: index * 10,
    endedAtMs: index * 10 + 5,
    ...fields,
  });
}

/** Calls of one random attempt and the parent that each was really made from (by id; null = root). */
export interface RandomAttempt {
  readonly calls: readonly CapturedCall[];
  readonly madeFrom: ReadonlyMap<CallId, CallId | null>;
}

/** A random attempt of `count` calls over an alphabet small enough for collisions of prefixes. */
export function randomAttempt(seed: number, count: number): RandomAttempt {
  const random = createRandom(seed);
  const calls: CapturedCall[] = [];
  const madeFrom = new Map<CallId, CallId | null>();
  // Every call samples a first token of its own, so that the true parent is known without ambiguity.
  let unique = 100;
  const tokens = (length: number): number[] => Array.from({ length }, () => 1 + random.integer(3));
  for (let index = 0; index < count; index += 1) {
    const kind = random.integer(10);
    const earlier = calls.length > 0 ? calls[random.integer(calls.length)] : undefined;
    const last = calls.at(-1);
    let promptIds: number[] = [];
    let parent: CallId | null = null;
    const base = kind < 6 ? last : kind < 8 ? earlier : undefined;
    if (base !== undefined && base.sampledIds.length > 0) {
      promptIds = [...base.promptIds, ...base.sampledIds, ...tokens(random.integer(4))];
      parent = base.callId;
    } else if (kind === 8 && earlier !== undefined) {
      promptIds = [...earlier.promptIds];
      parent = madeFrom.get(earlier.callId) ?? null;
    } else {
      promptIds = [9, 9, ...tokens(1 + random.integer(4))];
    }
    unique += 1;
    const sampledIds = random.integer(12) === 0 ? [] : [unique, ...tokens(random.integer(4))];
    const aborted = random.integer(10) === 0;
    const call = makeCall(index, {
      promptIds,
      sampledIds,
      finishReason: aborted ? "aborted" : "stop",
      issues: aborted ? ["aborted"] : [],
    });
    calls.push(call);
    madeFrom.set(call.callId, parent);
  }
  return { calls, madeFrom };
}

/** The list in a random order. */
export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = createRandom(seed);
  return items
    .map((item) => ({ item, key: random.next() }))
    .sort((a, b) => a.key - b.key)
    .map(({ item }) => item);
}
