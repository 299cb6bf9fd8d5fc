import {
  asId,
  type Engine,
  type GenerateRequest,
  GimbalError,
  type PolicyVersion,
} from "@gimbal-rl/core";
import { expect, test } from "vitest";
import { createTracingPolicy, type TracingPolicy } from "../../test/tracing-policy.js";
import { createInProcessChannel, type HostChannel } from "./host-channel.js";
import { connectLocalEngine, type LocalEngine } from "./local-engine.js";

const request: GenerateRequest = {
  promptIds: [1, 2, 3],
  maxTokens: 12,
  sampling: { temperature: 1, topP: 1, topK: 0 },
  stopIds: [],
  seed: 5,
};

const never = new AbortController().signal;

/** An engine over a tracing policy; folders are names of salts: `salt-3`. */
async function engineOf(policy: TracingPolicy = createTracingPolicy()): Promise<LocalEngine> {
  const saltOf = (modelDir: string): number => {
    const salt = Number(modelDir.replace("salt-", ""));
    if (Number.isNaN(salt)) throw new GimbalError("model-invalid", `${modelDir} is not a model.`);
    return salt;
  };
  const channel = createInProcessChannel({
    load: ({ modelDir }) => {
      policy.salt = saltOf(modelDir);
      return Promise.resolve({
        policy,
        slots: 512,
        replaceWeights: async (dir) => {
          policy.salt = saltOf(dir);
        },
        dispose: () => Promise.resolve(),
      });
    },
  });
  return connectLocalEngine({ modelDir: "salt-1" }, channel);
}

interface Collected {
  ids: number[];
  logprobs: number[];
  versions: Set<string>;
  reason: string;
}

async function collect(
  engine: Engine,
  over: Partial<GenerateRequest> = {},
  signal: AbortSignal = never,
): Promise<Collected> {
  const result: Collected = { ids: [], logprobs: [], versions: new Set(), reason: "" };
  for await (const event of engine.generate({ ...request, ...over }, signal)) {
    if (event.type === "tokens-delta") {
      result.ids.push(...event.ids);
      result.logprobs.push(...event.logprobs);
      result.versions.add(event.policyVersion);
    } else result.reason = event.reason;
  }
  return result;
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "none";
  } catch (error) {
    return GimbalError.is(error) ? error.code : String(error);
  }
}

test("an engine says what it is and samples the same tokens for the same request", async () => {
  const engine = await engineOf();
  expect(engine.info).toEqual({
    id: "local",
    model: "salt-1",
    captureMode: "tokens",
    contextLength: 512,
    vocabularySize: 13,
    logprobsAfterTemperature: true,
  });
  const [first, second] = await Promise.all([collect(engine), collect(engine)]);
  expect(first.ids).toHaveLength(12);
  expect(first).toEqual(second);
  expect(first.versions).toEqual(new Set(["initial"]));
  expect((await engine.stats()).sampledTokens).toBe(24);
  await engine[Symbol.asyncDispose]();
});

test("an aborted signal ends the call as aborted and keeps the tokens sampled until then", async () => {
  const engine = await engineOf();
  const controller = new AbortController();
  const ids: number[] = [];
  let reason = "";
  for await (const event of engine.generate({ ...request, maxTokens: 400 }, controller.signal)) {
    if (event.type === "tokens-delta") ids.push(...event.ids);
    else reason = event.reason;
    if (ids.length >= 3) controller.abort();
  }
  expect(reason).toBe("aborted");
  expect(ids.length).toBeLessThan(400);
  expect(await collect(engine, {}, AbortSignal.abort())).toMatchObject({
    ids: [],
    reason: "aborted",
  });
  await engine[Symbol.asyncDispose]();
});

test("leaving the loop stops the call and frees its place", async () => {
  const engine = await engineOf();
  for await (const event of engine.generate({ ...request, maxTokens: 400 }, never)) {
    if (event.type === "tokens-delta") break;
  }
  const stats = await engine.stats();
  expect(stats).toMatchObject({ running: 0, waiting: 0, abortedCalls: 1 });
  await engine[Symbol.asyncDispose]();
});

test("weights change between calls: calls in flight finish first, later ones get the new version", async () => {
  const engine = await engineOf();
  const before = collect(engine, { maxTokens: 60 });
  const loaded = engine.loadWeights("salt-2", asId<PolicyVersion>("v2"));
  const after = collect(engine, { maxTokens: 60 });
  expect(engine.policyVersion()).toBe("initial");
  await loaded;
  expect(engine.policyVersion()).toBe("v2");
  expect((await before).versions).toEqual(new Set(["initial"]));
  expect((await before).ids).toHaveLength(60);
  expect((await after).versions).toEqual(new Set(["v2"]));
  expect((await after).ids).not.toEqual((await before).ids);
  expect((await collect(await engineOf(), { maxTokens: 60 })).ids).toEqual((await before).ids);
  await engine[Symbol.asyncDispose]();
});

test("a call aborted while it waits for new weights ends as aborted", async () => {
  const engine = await engineOf();
  const running = collect(engine, { maxTokens: 60 });
  const loaded = engine.loadWeights("salt-2", asId<PolicyVersion>("v2"));
  const controller = new AbortController();
  const waiting = collect(engine, {}, controller.signal);
  controller.abort();
  expect(await waiting).toMatchObject({ ids: [], reason: "aborted" });
  await loaded;
  expect((await running).ids).toHaveLength(60);
  await engine[Symbol.asyncDispose]();
});

test("weights that cannot be loaded leave the engine as it was", async () => {
  const engine = await engineOf();
  const before = await collect(engine);
  expect(await codeOf(engine.loadWeights("nonsense", asId<PolicyVersion>("v2")))).toBe(
    "model-invalid",
  );
  expect(engine.policyVersion()).toBe("initial");
  expect(await collect(engine)).toEqual(before);
  await engine[Symbol.asyncDispose]();
});

test("a model that is not one is refused at the start", async () => {
  const channel = createInProcessChannel({
    load: () => Promise.reject(new GimbalError("model-invalid", "no config.json")),
  });
  expect(await codeOf(connectLocalEngine({ modelDir: "x" }, channel))).toBe("model-invalid");
});

test("closing fails what is open as unavailable, and so does using a closed engine", async () => {
  const engine = await engineOf();
  const open = codeOf(collect(engine, { maxTokens: 400 }));
  await engine[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  expect(await open).toBe("unavailable");
  expect(await codeOf(collect(engine))).toBe("unavailable");
  expect(await codeOf(engine.stats())).toBe("unavailable");
});

test("when the other side dies every call fails with engine-failed and the engine says so", async () => {
  let die: (error: GimbalError) => void = () => {};
  const inner = createInProcessChannel({
    load: () =>
      Promise.resolve({
        policy: createTracingPolicy(),
        slots: 64,
        replaceWeights: () => Promise.resolve(),
        dispose: () => Promise.resolve(),
      }),
  });
  const channel: HostChannel = {
    ...inner,
    listen: (onReply, onFailure) => {
      die = onFailure;
      inner.listen(onReply, onFailure);
    },
  };
  const engine = await connectLocalEngine({ modelDir: "x" }, channel);
  expect(engine.failure()).toBeNull();
  const open = codeOf(collect(engine, { maxTokens: 50 }));
  const loading = codeOf(engine.loadWeights("x", asId<PolicyVersion>("v2")));
  die(new GimbalError("engine-failed", "the worker ended"));
  expect(await open).toBe("engine-failed");
  expect(await loading).toBe("engine-failed");
  expect(await codeOf(collect(engine))).toBe("engine-failed");
  expect(engine.failure()?.code).toBe("engine-failed");
  await engine[Symbol.asyncDispose]();
});

test("a call beyond the context is refused before it reaches the sampler", async () => {
  const engine = await engineOf();
  expect(await codeOf(collect(engine, { promptIds: new Array(512).fill(1) }))).toBe(
    "context-length-exceeded",
  );
  expect((await engine.stats()).steps).toBe(0);
  await engine[Symbol.asyncDispose]();
});

test.each(["threads", "slots", "maxRunning", "prefillRows"] as const)(
  "%s must be a whole number of at least 1, and a wrong one closes the channel",
  async (option) => {
    for (const value of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      let closed = 0;
      const inner = createInProcessChannel();
      const channel: HostChannel = {
        ...inner,
        close: () => {
          closed += 1;
          return inner.close();
        },
      };
      const starting = connectLocalEngine({ modelDir: "any", [option]: value }, channel);
      await expect(starting).rejects.toMatchObject({
        code: "config-invalid",
        message: expect.stringContaining(`${option} is ${value}`),
      });
      expect(closed).toBe(1);
    }
  },
);
