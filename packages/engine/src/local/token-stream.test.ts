import { asId, GimbalError, type PolicyVersion } from "@gimbal-rl/core";
import { expect, test } from "vitest";
import { TokenStream } from "./token-stream.js";

const v1 = asId<PolicyVersion>("v1");
const v2 = asId<PolicyVersion>("v2");

test("unread tokens of one policy version are joined, those of another are not", async () => {
  const stream = new TokenStream();
  stream.pushTokens([1], [-1], v1);
  stream.pushTokens([2, 3], [-2, -3], v1);
  stream.pushTokens([4], [-4], v2);
  stream.pushEnd("stop", 5);
  expect(await stream.next()).toEqual({
    type: "tokens-delta",
    ids: [1, 2, 3],
    logprobs: [-1, -2, -3],
    policyVersion: v1,
  });
  expect(await stream.next()).toMatchObject({ ids: [4], policyVersion: v2 });
  expect(await stream.next()).toEqual({ type: "generate-end", reason: "stop", cachedTokens: 5 });
});

test("a waiting reader gets the next event, and a failure comes after the events before it", async () => {
  const stream = new TokenStream();
  const waiting = stream.next();
  stream.pushTokens([1], [-1], v1);
  expect(await waiting).toMatchObject({ ids: [1] });
  stream.pushTokens([2], [-2], v1);
  stream.fail(new GimbalError("engine-failed", "gone"));
  expect(await stream.next()).toMatchObject({ ids: [2] });
  await expect(stream.next()).rejects.toMatchObject({ code: "engine-failed" });
});
