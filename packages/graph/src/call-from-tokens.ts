/**
 * A CapturedCall from bare token arrays: for logs that hold ids and log-probabilities and nothing else.
 */
import {
  asId,
  type CallId,
  type CapturedCall,
  type PolicyVersion,
  type SessionId,
} from "@gimbal-rl/core";

/** What must be known of a call; any other field of a CapturedCall may be given too. */
export interface TokenCall extends Partial<CapturedCall> {
  /** Position in the session, by arrival, from 0. */
  readonly index: number;
  readonly promptIds: readonly number[];
  readonly sampledIds: readonly number[];
  /** Natural log, one per sampled id. */
  readonly logprobs: readonly number[];
}

/**
 * Fills in the fields that linking, validation and batching do not need: an OpenAI-style call at temperature 1 that
 * stopped by itself.
 *
 * @example
 * callFromTokens({ index: 0, promptIds: [1, 2], sampledIds: [3], logprobs: [-0.1] });
 */
export function callFromTokens(fields: TokenCall): CapturedCall {
  const { index, promptIds, sampledIds } = fields;
  const tokens = sampledIds.length;
  return {
    callId: asId<CallId>(`call-${index}`),
    sessionId: asId<SessionId>("session"),
    attemptId: null,
    dialect: "openai-chat",
    captureMode: "tokens",
    model: "unknown",
    stream: false,
    requestBlob: null,
    responseBlob: null,
    conversation: { messages: [], tools: [] },
    message: null,
    policyRuns: tokens === 0 ? [] : [{ policyVersion: asId<PolicyVersion>("unknown"), tokens }],
    samplingAsked: {},
    samplingApplied: { temperature: 1, topP: 1, topK: 0, maxTokens: tokens },
    seed: 0,
    finishReason: "stop",
    usage: { promptTokens: promptIds.length, completionTokens: tokens, cachedTokens: 0 },
    tape: { parentCallId: null, reusedTokens: 0, rewritten: [], forkReason: null },
    volatile: [],
    ignoredFields: [],
    issues: [],
    retryOf: null,
    startedAtMs: index,
    firstTokenAtMs: null,
    endedAtMs: index,
    ...fields,
  };
}
