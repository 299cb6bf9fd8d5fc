/**
 * Makes CapturedCalls for tests, and a random attempt: an agent that continues, repeats, forks and starts anew.
 */
import {
  type AttemptId,
  asId,
  type CallId,
  type CapturedCall,
  createRandom,
  type PolicyVersion,
  type SessionId,
} from "@gimbal-rl/core";

/** The fields that graph reads; the rest is filled in so that the call is valid. */
export type CallFields = Partial<CapturedCall> & {
  readonly promptIds: readonly number[];
  readonly sampledIds: readonly number[];
};

/** A valid call with the given ids. */
export function makeCall(index: number, fields: CallFields): CapturedCall {
  const { promptIds, sampledIds } = fields;
  return {
    callId: asId<CallId>(`call-${index}`),
    sessionId: asId<SessionId>("session"),
    attemptId: asId<AttemptId>("attempt"),
    index,
    dialect: "openai-chat",
    captureMode: "tokens",
    model: "test",
    stream: true,
    requestBlob: null,
    responseBlob: null,
    conversation: { messages: [], tools: [] },
    message: null,
    logprobs: sampledIds.map((id, i) => Math.fround(-0.01 * (id + 1) - 0.001 * i - index * 1e-4)),
    policyRuns:
      sampledIds.length === 0
        ? []
        : [{ policyVersion: asId<PolicyVersion>("v0"), tokens: sampledIds.length }],
    samplingAsked: {},
    samplingApplied: { temperature: 1, topP: 1, topK: 0, maxTokens: 64 },
    seed: index,
    finishReason: "stop",
    usage: {
      promptTokens: promptIds.length,
      completionTokens: sampledIds.length,
      cachedTokens: 0,
    },
    tape: { parentCallId: null, reusedTokens: 0, rewritten: [], forkReason: null },
    volatile: [],
    ignoredFields: [],
    issues: [],
    retryOf: null,
    startedAtMs: index * 10,
    firstTokenAtMs: index * 10 + 1,
    endedAtMs: index * 10 + 5,
    ...fields,
  };
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
