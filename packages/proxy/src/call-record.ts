/**
 * What a finished call leaves behind: the CapturedCall record, and its way into the store.
 *
 * Law: the counts agree or the record says so; storing it never delays or breaks the answer.
 */
import {
  type AskedSampling,
  type AssistantMessage,
  asId,
  type BlobId,
  type CallId,
  type CallIssue,
  type CapturedCall,
  type DialectId,
  type EngineInfo,
  type FinishReason,
  type PolicyRun,
  type PolicyVersion,
  type Store,
} from "@gimbal-rl/core";
import type { PreparedCall } from "./prepare-call.js";
import type { Session } from "./session.js";

/** Tokens of one generation, as they arrive. */
export class SampledTokens {
  readonly ids: number[] = [];
  readonly logprobs: number[] = [];
  readonly runs: { policyVersion: PolicyVersion; tokens: number }[] = [];
  cachedTokens = 0;
  firstAtMs: number | null = null;
  /** An event's ids and log-probabilities differed in number. */
  countsDiffer = false;
  /** The engine sampled more than it was asked for; what came beyond is not kept. */
  limitIgnored = false;

  add(
    ids: readonly number[],
    logprobs: readonly number[],
    policyVersion: PolicyVersion,
    nowMs: number,
  ): void {
    if (ids.length === 0 && logprobs.length === 0) return;
    this.firstAtMs ??= nowMs;
    if (ids.length !== logprobs.length) this.countsDiffer = true;
    for (const id of ids) this.ids.push(id);
    for (const logprob of logprobs) this.logprobs.push(logprob);
    const last = this.runs.at(-1);
    if (last !== undefined && last.policyVersion === policyVersion) last.tokens += ids.length;
    else this.runs.push({ policyVersion, tokens: ids.length });
  }
}

/** What is known when a call ends. */
export interface CallResult {
  readonly callId: CallId;
  readonly index: number;
  readonly session: Session;
  readonly dialect: DialectId;
  readonly engine: EngineInfo;
  readonly prepared: PreparedCall;
  readonly tokens: SampledTokens;
  readonly message: AssistantMessage | null;
  readonly malformed: boolean;
  readonly finishReason: FinishReason;
  readonly retryOf: CallId | null;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

function issuesOf({ tokens, message, malformed, finishReason }: CallResult): CallIssue[] {
  const issues = new Set<CallIssue>();
  if (finishReason === "aborted") issues.add("aborted");
  if (finishReason === "error") issues.add("engine-error");
  if (finishReason === "length") issues.add("truncated");
  if (malformed) issues.add("malformed-tool-call");
  if (message === null || message.parts.length === 0) issues.add("empty");
  if (tokens.ids.length === 0 && message !== null && message.parts.length > 0) {
    issues.add("missing-ids");
  }
  if (tokens.ids.length > 0 && tokens.logprobs.length === 0) issues.add("missing-logprobs");
  // A log-probability that is not a number at most 0 is a sentinel, not a measurement.
  if (tokens.logprobs.some((value) => !(value <= 0 && value > Number.NEGATIVE_INFINITY))) {
    issues.add("missing-logprobs");
  }
  if (tokens.countsDiffer || tokens.limitIgnored) issues.add("count-mismatch");
  return [...issues].sort();
}

/** Builds the record; raw bodies get their addresses when they are stored. */
export function buildCapturedCall(result: CallResult): CapturedCall {
  const { prepared, tokens, session } = result;
  const { request, plan } = prepared;
  const asked: AskedSampling = request.sampling;
  const policyRuns: PolicyRun[] = tokens.runs.map((run) => ({ ...run }));
  return {
    callId: result.callId,
    sessionId: session.init.sessionId,
    attemptId: session.init.attemptId,
    index: result.index,
    dialect: result.dialect,
    captureMode: result.engine.captureMode,
    model: request.model,
    stream: request.stream,
    requestBlob: null,
    responseBlob: null,
    conversation: prepared.conversation,
    message: result.message,
    promptIds: plan.promptIds,
    sampledIds: tokens.ids,
    logprobs: tokens.logprobs,
    policyRuns,
    samplingAsked: asked,
    samplingApplied: { ...prepared.sampling, maxTokens: prepared.maxTokens },
    seed: prepared.seed,
    finishReason: result.finishReason,
    usage: {
      promptTokens: plan.promptIds.length,
      completionTokens: tokens.ids.length,
      cachedTokens: tokens.cachedTokens,
    },
    tape: {
      parentCallId: plan.parentCallId,
      reusedTokens: plan.reusedTokens,
      rewritten: plan.rewritten,
      forkReason: plan.forkReason,
    },
    volatile: prepared.replacements,
    ignoredFields: request.ignoredFields,
    issues: issuesOf(result),
    retryOf: result.retryOf,
    startedAtMs: result.startedAtMs,
    firstTokenAtMs: tokens.firstAtMs,
    endedAtMs: result.endedAtMs,
  };
}

/** Stores a record with its raw bodies; resolves to the record with their addresses. */
export async function storeCapturedCall(
  store: Store,
  call: CapturedCall,
  requestBody: Uint8Array,
  responseText: string,
): Promise<CapturedCall> {
  const requestBlob: BlobId = await store.putBlob(requestBody);
  const responseBlob: BlobId = await store.putBlob(new TextEncoder().encode(responseText));
  const stored: CapturedCall = { ...call, requestBlob, responseBlob };
  await store.append("call-end", asId<CallId>(call.callId), stored);
  return stored;
}
