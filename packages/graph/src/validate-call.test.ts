import { asId, type CapturedCall, type PolicyVersion } from "@gimbal-rl/core";
import { expect, test } from "vitest";
import { makeCall } from "../test/calls.js";
import { type ValidateCallOptions, validateCall } from "./validate-call.js";

const codes = (fields: Partial<CapturedCall>, options?: ValidateCallOptions): string[] =>
  validateCall(makeCall(0, { promptIds: [1], sampledIds: [2, 3], ...fields }), options).map(
    (finding) => `${finding.level} ${finding.code}`,
  );
const version = asId<PolicyVersion>("v");

test("a good call has no findings", () => {
  expect(codes({}, { temperature: 1, vocabularySize: 4 })).toEqual([]);
});

test.each<[string, Partial<CapturedCall>]>([
  ["count-mismatch", { usage: { promptTokens: 1, completionTokens: 3, cachedTokens: 0 } }],
  ["count-mismatch", { usage: { promptTokens: 2, completionTokens: 2, cachedTokens: 0 } }],
  ["count-mismatch", { policyRuns: [{ policyVersion: version, tokens: 1 }] }],
  ["count-mismatch", { logprobs: [-1, -1, -1] }],
  ["count-mismatch", { issues: ["count-mismatch"] }],
  ["missing-logprobs", { logprobs: [] }],
  ["positive-logprob", { logprobs: [-1, 0.5] }],
  ["sentinel-logprob", { logprobs: [-1, -9999] }],
  ["non-finite-logprob", { logprobs: [-1, Number.NaN] }],
  ["non-finite-logprob", { logprobs: [-1, Number.NEGATIVE_INFINITY] }],
  ["missing-ids", { issues: ["missing-ids"] }],
  [
    "temperature-mismatch",
    { samplingApplied: { temperature: 0.7, topP: 1, topK: 0, maxTokens: 9 } },
  ],
  ["bad-token-id", { sampledIds: [2, 99] }],
  ["bad-token-id", { promptIds: [-1] }],
])("%s is fatal: %j", (code, fields) => {
  expect(codes(fields, { temperature: 1, vocabularySize: 10 })).toEqual([`fatal ${code}`]);
});

test("a prompt without ids is fatal, because the first sampled token has nothing to hang on", () => {
  const usage = { promptTokens: 0, completionTokens: 2, cachedTokens: 0 };
  expect(codes({ promptIds: [], usage })).toEqual(["fatal empty-prompt"]);
});

test("rounding above zero is not a positive log-probability", () => {
  expect(codes({ logprobs: [1e-7, -1] })).toEqual([]);
});

test.each<[string, Partial<CapturedCall>]>([
  ["warn aborted", { finishReason: "aborted" }],
  ["warn engine-error", { finishReason: "error" }],
  ["warn malformed-tool-call", { issues: ["malformed-tool-call"] }],
  [
    "warn truncated-support",
    { samplingApplied: { temperature: 1, topP: 0.9, topK: 0, maxTokens: 9 } },
  ],
  [
    "warn truncated-support",
    { samplingApplied: { temperature: 1, topP: 1, topK: 40, maxTokens: 9 } },
  ],
  ["info truncated", { issues: ["truncated"] }],
  ["info volatile-parts", { volatile: [{ rule: "r", original: "a", replacement: "b" }] }],
])("%s is reported and trained: %j", (finding, fields) => {
  expect(codes(fields)).toEqual([finding]);
});

test("a call with two policy versions trains and is reported", () => {
  const policyRuns = [
    { policyVersion: version, tokens: 1 },
    { policyVersion: asId<PolicyVersion>("w"), tokens: 1 },
  ];
  expect(codes({ policyRuns })).toEqual(["warn mixed-versions"]);
});
