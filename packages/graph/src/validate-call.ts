/**
 * Graded checks of one captured call. `fatal` never trains; `warn` trains and is reported; `info` is worth knowing.
 */
import type { CapturedCall } from "@gimbal-rl/core";

/** How serious a finding is. */
export type FindingLevel = "fatal" | "warn" | "info";

/** What was found. */
export type FindingCode =
  | "aborted"
  | "bad-token-id"
  | "count-mismatch"
  | "empty"
  | "empty-prompt"
  | "engine-error"
  | "malformed-tool-call"
  | "missing-ids"
  | "missing-logprobs"
  | "mixed-versions"
  | "non-finite-logprob"
  | "positive-logprob"
  | "rewritten-arguments"
  | "sentinel-logprob"
  | "temperature-mismatch"
  | "truncated"
  | "truncated-support"
  | "volatile-parts";

/** One finding about one call. */
export interface CallFinding {
  readonly level: FindingLevel;
  readonly code: FindingCode;
  readonly message: string;
}

/** What the call is checked against. */
export interface ValidateCallOptions {
  /** Ids must be below this. Unknown when absent. */
  readonly vocabularySize?: number;
  /** The temperature that training will use; a call sampled at another is fatal. Not checked when absent. */
  readonly temperature?: number;
  /** False when log-probabilities are not used, as in SFT: their absence is then `info`. Default true. */
  readonly requireLogprobs?: boolean;
}

/** Rounding can lift the log-probability of a near-certain token this far above 0 (nats). */
const positiveTolerance = 1e-3;
/** Engines write -9999 or the f32 minimum for "unknown"; a real f32 log-softmax stays far above this (nats). */
const sentinelBelow = -9000;

function checkLogprobs(call: CapturedCall, required: boolean): CallFinding[] {
  const level: FindingLevel = required ? "fatal" : "info";
  const found: CallFinding[] = [];
  const add = (code: FindingCode, message: string): void => {
    found.push({ level, code, message });
  };
  const { logprobs, sampledIds } = call;
  if (logprobs.length === 0) {
    add("missing-logprobs", `no log-probabilities for ${sampledIds.length} sampled ids`);
    return found;
  }
  if (logprobs.length !== sampledIds.length) {
    add("count-mismatch", `${logprobs.length} log-probabilities, ${sampledIds.length} sampled ids`);
  }
  const nonFinite = logprobs.findIndex((value) => !Number.isFinite(value));
  if (nonFinite >= 0) {
    add("non-finite-logprob", `log-probability ${nonFinite} is ${logprobs[nonFinite]}`);
  }
  const positive = logprobs.findIndex((value) => value > positiveTolerance);
  if (positive >= 0) {
    add("positive-logprob", `log-probability ${positive} is ${logprobs[positive]}, above 0`);
  }
  const sentinel = logprobs.findIndex((value) => Number.isFinite(value) && value <= sentinelBelow);
  if (sentinel >= 0) {
    add("sentinel-logprob", `log-probability ${sentinel} is ${logprobs[sentinel]}, a placeholder`);
  }
  return found;
}

function checkCounts(call: CapturedCall): CallFinding[] {
  const found: CallFinding[] = [];
  const mismatch = (message: string): void => {
    found.push({ level: "fatal", code: "count-mismatch", message });
  };
  const sampled = call.sampledIds.length;
  if (call.usage.completionTokens !== sampled) {
    mismatch(`usage reports ${call.usage.completionTokens} tokens, ${sampled} sampled ids`);
  }
  if (call.usage.promptTokens !== call.promptIds.length) {
    mismatch(
      `usage reports ${call.usage.promptTokens} prompt tokens, ${call.promptIds.length} ids`,
    );
  }
  const inRuns = call.policyRuns.reduce((sum, run) => sum + run.tokens, 0);
  if (inRuns !== sampled) mismatch(`policy runs hold ${inRuns} tokens, ${sampled} sampled ids`);
  return found;
}

function checkIds(call: CapturedCall, vocabularySize: number): CallFinding[] {
  const bad = (id: number): boolean => !Number.isInteger(id) || id < 0 || id >= vocabularySize;
  const id = call.promptIds.find(bad) ?? call.sampledIds.find(bad);
  if (id === undefined) return [];
  const message = `id ${id} is outside the vocabulary of ${vocabularySize}`;
  return [{ level: "fatal", code: "bad-token-id", message }];
}

/**
 * Checks one call. An empty list means nothing to say.
 *
 * @example
 * validateCall(call).some((finding) => finding.level === "fatal"); // true = never trained
 */
export function validateCall(
  call: CapturedCall,
  options: ValidateCallOptions = {},
): readonly CallFinding[] {
  const found: CallFinding[] = [];
  const add = (level: FindingLevel, code: FindingCode, message: string): void => {
    if (!found.some((finding) => finding.code === code)) found.push({ level, code, message });
  };
  const required = options.requireLogprobs ?? true;
  const { issues } = call;

  if (
    issues.includes("missing-ids") ||
    (call.sampledIds.length === 0 && call.usage.completionTokens > 0)
  ) {
    add(
      "fatal",
      "missing-ids",
      `the engine returned no ids for ${call.usage.completionTokens} tokens`,
    );
  } else if (call.sampledIds.length === 0) {
    add("info", "empty", "nothing was sampled");
  } else {
    if (call.promptIds.length === 0) add("fatal", "empty-prompt", "no prompt ids to condition on");
    found.push(...checkCounts(call), ...checkLogprobs(call, required));
    found.push(...checkIds(call, options.vocabularySize ?? Number.MAX_SAFE_INTEGER));
    if (issues.includes("count-mismatch")) add("fatal", "count-mismatch", "flagged at capture");
    if (issues.includes("missing-logprobs")) {
      add(required ? "fatal" : "info", "missing-logprobs", "flagged at capture");
    }
    const { temperature, topK, topP } = call.samplingApplied;
    if (options.temperature !== undefined && temperature !== options.temperature) {
      const message = `sampled at temperature ${temperature}, trained at ${options.temperature}`;
      add("fatal", "temperature-mismatch", message);
    }
    if (topP !== 1 || topK !== 0) {
      add(
        "warn",
        "truncated-support",
        `top_p ${topP}, top_k ${topK}: ratios are biased (trl#6789)`,
      );
    }
  }
  if (call.policyRuns.length > 1) {
    add("warn", "mixed-versions", `${call.policyRuns.length} policy versions in one call`);
  }
  if (issues.includes("aborted") || call.finishReason === "aborted") {
    add("warn", "aborted", "the client left, or a limit stopped the call");
  }
  if (issues.includes("engine-error") || call.finishReason === "error") {
    add("warn", "engine-error", "the engine failed during the call");
  }
  if (issues.includes("malformed-tool-call")) {
    add("warn", "malformed-tool-call", "a tool call did not parse; sent as text");
  }
  if (issues.includes("truncated")) add("info", "truncated", "cut by a token limit");
  if (call.tape.rewritten.length > 0) {
    const message = `the harness changed the text of the arguments of earlier calls (${call.tape.rewritten.length})`;
    add("info", "rewritten-arguments", message);
  }
  if (call.volatile.length > 0) {
    add("info", "volatile-parts", `${call.volatile.length} volatile prompt parts were replaced`);
  }
  return found;
}
