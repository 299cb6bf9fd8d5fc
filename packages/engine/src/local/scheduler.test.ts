import {
  asId,
  createRandom,
  type GenerateRequest,
  GimbalError,
  type PolicyVersion,
  type SessionId,
} from "@gimbal-rl/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createTracingPolicy, type TracingPolicy } from "../../test/tracing-policy.js";
import { Scheduler } from "./scheduler.js";

interface Result {
  ids: number[];
  logprobs: number[];
  versions: string[];
  ended: string | null;
  cachedTokens: number;
}

const v1 = asId<PolicyVersion>("v1");

function schedulerOf(
  policy: TracingPolicy,
  options: { slots?: number; prefillRows?: number; maxRunning?: number } = {},
): Scheduler {
  return new Scheduler({ policy, policyVersion: v1, slots: 2048, nowMs: () => 0, ...options });
}

function requestOf(
  promptIds: readonly number[],
  over: Partial<GenerateRequest> = {},
): GenerateRequest {
  return {
    promptIds,
    maxTokens: 8,
    sampling: { temperature: 1, topP: 1, topK: 0 },
    stopIds: [0],
    seed: 7,
    ...over,
  };
}

function submit(scheduler: Scheduler, request: GenerateRequest): { result: Result; abort(): void } {
  const result: Result = { ids: [], logprobs: [], versions: [], ended: null, cachedTokens: -1 };
  const abort = scheduler.submit(request, {
    token: (id, logprob, version) => {
      if (result.ended !== null) throw new Error("a token after the end");
      result.ids.push(id);
      result.logprobs.push(logprob);
      result.versions.push(version);
    },
    end: (reason, cachedTokens) => {
      if (result.ended !== null) throw new Error("two ends");
      result.ended = reason;
      result.cachedTokens = cachedTokens;
    },
    fail: (error) => {
      if (result.ended !== null) throw new Error("two ends");
      result.ended = error.code;
    },
  });
  return { result, abort };
}

async function drain(scheduler: Scheduler): Promise<void> {
  for (let steps = 0; await scheduler.step(); steps += 1) {
    if (steps > 20_000) throw new Error("the scheduler does not come to an end");
  }
}

async function alone(request: GenerateRequest): Promise<Result> {
  const scheduler = schedulerOf(createTracingPolicy());
  const { result } = submit(scheduler, request);
  await drain(scheduler);
  return result;
}

const sampling = fc.constantFrom(
  { temperature: 1, topP: 1, topK: 0 },
  { temperature: 0.6, topP: 1, topK: 0 },
  { temperature: 0, topP: 1, topK: 0 },
  { temperature: 1.3, topP: 0.8, topK: 5 },
);

/** At most 144 slots each. */
const anyRequest: fc.Arbitrary<GenerateRequest> = fc.record({
  promptIds: fc
    .tuple(
      fc.constantFrom(0, 5, 17, 40),
      fc.integer({ min: 3, max: 5 }),
      fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 23 }),
    )
    .map(([length, shared, own]) => [...new Array(length).fill(shared), 1, ...own]),
  maxTokens: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constant(80)),
  sampling,
  stopIds: fc.constantFrom([], [], [], [4, 5]),
  seed: fc.integer({ min: 0, max: 3 }),
  sessionId: fc.constantFrom("a", "b", "c").map((id) => asId<SessionId>(id)),
});

test("a call gives the same ids and log-probability bits alone and in any crowd, order, chunking and cache", async () => {
  const seen = { evictedRows: 0, preemptions: 0, recomputedRows: 0, reusedRows: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ request: anyRequest, stepsBefore: fc.integer({ min: 0, max: 4 }) }), {
        minLength: 1,
        maxLength: 12,
      }),
      fc.record({
        slots: fc.integer({ min: 145, max: 240 }),
        prefillRows: fc.integer({ min: 1, max: 70 }),
        maxRunning: fc.integer({ min: 1, max: 6 }),
      }),
      async (calls, options) => {
        const policy = createTracingPolicy();
        const scheduler = schedulerOf(policy, options);
        const results: Result[] = [];
        for (const { request, stepsBefore } of calls) {
          for (let i = 0; i < stepsBefore; i += 1) await scheduler.step();
          results.push(submit(scheduler, request).result);
        }
        await drain(scheduler);
        for (const [i, { request }] of calls.entries()) {
          const { cachedTokens: _cached, ...expected } = await alone(request);
          expect(results[i]).toMatchObject(expected);
        }
        const stats = scheduler.stats();
        for (const name of [
          "evictedRows",
          "preemptions",
          "recomputedRows",
          "reusedRows",
        ] as const) {
          seen[name] += stats[name];
        }
      },
    ),
    { numRuns: 70 },
  );
  // The runs met everything that could have changed a result.
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(0);
});

test("each unique prompt row is computed once, also when equal prompts arrive together", async () => {
  const policy = createTracingPolicy();
  const scheduler = schedulerOf(policy, { prefillRows: 50 });
  const shared = Array.from({ length: 300 }, (_, i) => i % 11);
  const results = Array.from({ length: 16 }, (_, i) =>
    submit(scheduler, requestOf([...shared, 1 + (i % 4)], { maxTokens: 1, seed: i, stopIds: [] })),
  );
  await drain(scheduler);
  const stats = scheduler.stats();
  expect(stats.computedRows).toBe(304 + stats.recomputedRows);
  expect(stats.recomputedRows).toBe(0);
  expect(policy.counts.rows).toBe(stats.computedRows);
  expect(stats.reusedRows).toBe(16 * 301 - 304);
  expect(results.every(({ result }) => result.ended === "length")).toBe(true);
});

test("a later turn computes only what it adds", async () => {
  const policy = createTracingPolicy();
  const scheduler = schedulerOf(policy);
  const first = submit(scheduler, requestOf([1, 2, 3, 4], { maxTokens: 20, stopIds: [] })).result;
  await drain(scheduler);
  const before = scheduler.stats().computedRows;
  const next = [1, 2, 3, 4, ...first.ids, 5, 6];
  const second = submit(scheduler, requestOf(next, { maxTokens: 1 })).result;
  await drain(scheduler);
  expect(scheduler.stats().computedRows - before).toBe(3);
  expect(second.cachedTokens).toBe(next.length - 3);
});

test("calls that sample the same tokens share the rows they decode", async () => {
  const policy = createTracingPolicy();
  const scheduler = schedulerOf(policy);
  const request = requestOf([1, 2, 3], { maxTokens: 30, stopIds: [] });
  const calls = [
    submit(scheduler, request),
    submit(scheduler, request),
    submit(scheduler, request),
  ];
  await drain(scheduler);
  expect(calls[1].result.ids).toEqual(calls[0].result.ids);
  expect(calls[2].result.logprobs).toEqual(calls[0].result.logprobs);
  expect(scheduler.stats().computedRows).toBe(3 + 29);
});

test("calls that do not fit together take turns and all end with the result they have alone", async () => {
  const scheduler = schedulerOf(createTracingPolicy(), { slots: 100 });
  const requests = Array.from({ length: 6 }, (_, i) =>
    requestOf([1, 2, 3 + i], { maxTokens: 90, stopIds: [], seed: i }),
  );
  const calls = requests.map((request) => submit(scheduler, request));
  await drain(scheduler);
  expect(scheduler.stats().preemptions).toBeGreaterThan(0);
  for (const [i, request] of requests.entries()) {
    expect(calls[i].result.ids).toEqual((await alone(request)).ids);
  }
});

test("aborting frees the slots at once and ends the call as aborted", async () => {
  const scheduler = schedulerOf(createTracingPolicy(), { prefillRows: 10 });
  const prompt = Array.from({ length: 200 }, (_, i) => i % 13);
  const running = submit(scheduler, requestOf(prompt));
  await scheduler.step();
  expect(scheduler.stats().usedSlots).toBeGreaterThanOrEqual(200);
  running.abort();
  running.abort();
  expect(running.result.ended).toBe("aborted");
  expect(scheduler.stats().usedSlots).toBe(10);
  const waiting = submit(scheduler, requestOf(prompt));
  waiting.abort();
  expect(waiting.result.ended).toBe("aborted");
  expect(scheduler.idle).toBe(true);
});

test("a call aborted during a step gets no further token, and the others go on", async () => {
  const scheduler = schedulerOf(createTracingPolicy());
  const first = submit(scheduler, requestOf([1, 2], { stopIds: [] }));
  const second = submit(scheduler, requestOf([1, 3], { stopIds: [] }));
  const step = scheduler.step();
  first.abort();
  await step;
  await drain(scheduler);
  expect(first.result).toMatchObject({ ids: [], ended: "aborted" });
  expect(second.result).toMatchObject({ ended: "length" });
  expect(second.result.ids).toHaveLength(8);
});

test("a short prompt is not held up by a long one of another session", async () => {
  const scheduler = schedulerOf(createTracingPolicy(), { prefillRows: 64 });
  const long = Array.from({ length: 1900 }, (_, i) => (i * 7) % 13);
  submit(scheduler, requestOf(long, { sessionId: asId<SessionId>("long") }));
  await scheduler.step();
  const short = submit(scheduler, requestOf([1, 2, 3], { sessionId: asId<SessionId>("short") }));
  await scheduler.step();
  await scheduler.step();
  expect(short.result.ids.length).toBeGreaterThan(0);
});

test("one session cannot fill every running place while another waits", async () => {
  const scheduler = schedulerOf(createTracingPolicy(), { maxRunning: 2 });
  const greedy = Array.from({ length: 5 }, (_, i) =>
    submit(scheduler, requestOf([1, i], { sessionId: asId<SessionId>("greedy"), stopIds: [] })),
  );
  const modest = submit(scheduler, requestOf([2, 2], { sessionId: asId<SessionId>("modest") }));
  await scheduler.step();
  expect(greedy[0].result.ids).toHaveLength(1);
  expect(greedy[1].result.ids).toHaveLength(0);
  expect(modest.result.ids).toHaveLength(1);
});

test("a stop id ends the call and is part of it; otherwise the token limit or the context ends it", async () => {
  const all = await alone(requestOf([1, 2, 3], { maxTokens: 30, stopIds: [] }));
  expect(all).toMatchObject({ ended: "length" });
  const stop = all.ids[4];
  const stopped = await alone(requestOf([1, 2, 3], { maxTokens: 30, stopIds: [stop] }));
  expect(stopped.ids).toEqual(all.ids.slice(0, all.ids.indexOf(stop) + 1));
  expect(stopped.ended).toBe("stop");
  const scheduler = schedulerOf(createTracingPolicy(13, 40));
  const { result } = submit(scheduler, requestOf([1, 2, 3], { maxTokens: 1000, stopIds: [] }));
  await drain(scheduler);
  expect(result.ids).toHaveLength(37);
  expect(result.ended).toBe("length");
});

test("other weights start with an empty cache and stamp their own version", async () => {
  const policy = createTracingPolicy();
  const scheduler = schedulerOf(policy);
  submit(scheduler, requestOf([1, 2, 3]));
  await drain(scheduler);
  policy.salt = 2;
  scheduler.weightsReplaced(asId<PolicyVersion>("v2"));
  expect(scheduler.stats().usedSlots).toBe(0);
  const { result } = submit(scheduler, requestOf([1, 2, 3], { stopIds: [] }));
  await drain(scheduler);
  expect(new Set(result.versions)).toEqual(new Set(["v2"]));
  expect(result.cachedTokens).toBe(0);
});

test("a failing model fails the calls in flight with a code, and later calls work", async () => {
  const policy = createTracingPolicy();
  const scheduler = schedulerOf(policy);
  const broken = submit(scheduler, requestOf([1, 2]));
  policy.nextFailure = new Error("out of memory");
  await drain(scheduler);
  expect(broken.result.ended).toBe("engine-failed");
  const next = submit(scheduler, requestOf([1, 2]));
  await drain(scheduler);
  expect(next.result.ids).toEqual((await alone(requestOf([1, 2]))).ids);
});

test("bad requests are refused with a code that says what was wrong", () => {
  const scheduler = schedulerOf(createTracingPolicy(13, 20));
  const codeOf = (request: GenerateRequest): string => {
    try {
      submit(scheduler, request);
      return "none";
    } catch (error) {
      return GimbalError.is(error) ? error.code : String(error);
    }
  };
  const base = requestOf([1]);
  expect(codeOf(requestOf([]))).toBe("invalid-request");
  expect(codeOf(requestOf([13]))).toBe("invalid-request");
  expect(codeOf({ ...base, maxTokens: 0 })).toBe("invalid-request");
  expect(codeOf({ ...base, seed: -1 })).toBe("invalid-request");
  expect(codeOf({ ...base, sampling: { temperature: -1, topP: 1, topK: 0 } })).toBe(
    "invalid-request",
  );
  expect(codeOf({ ...base, sampling: { temperature: 1, topP: 0, topK: 0 } })).toBe(
    "invalid-request",
  );
  expect(codeOf({ ...base, sampling: { temperature: 1, topP: 1, topK: -2 } })).toBe(
    "invalid-request",
  );
  expect(codeOf(requestOf(new Array(20).fill(1)))).toBe("context-length-exceeded");
  expect(scheduler.idle).toBe(true);
});

test("sampled frequencies follow the distribution, and log-probabilities are its logarithms", async () => {
  const policy = createTracingPolicy(5);
  const scheduler = schedulerOf(policy);
  const random = createRandom(3);
  const counts = new Array(5).fill(0);
  const logprobs = new Array(5).fill(Number.NaN);
  for (let i = 0; i < 4000; i += 1) {
    const seed = random.integer(2 ** 32);
    const { result } = submit(scheduler, requestOf([1, 2], { maxTokens: 1, seed }));
    await drain(scheduler);
    counts[result.ids[0]] += 1;
    logprobs[result.ids[0]] = result.logprobs[0];
  }
  counts.forEach((count, id) => {
    const expected = Math.exp(logprobs[id]);
    if (count > 0) expect(Math.abs(count / 4000 - expected)).toBeLessThan(0.03);
  });
});
