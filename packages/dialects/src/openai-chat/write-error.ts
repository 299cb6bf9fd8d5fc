/**
 * Errors in the OpenAI shape. Harnesses decide from status, code and wording whether to retry, stop or compact.
 */
import type { DialectError, DialectResponse } from "../dialect.js";

/** Our codes that have a name of their own in the API. */
const wireCodes: ReadonlyMap<string, string> = new Map([
  ["budget-exhausted", "insufficient_quota"],
  ["context-length-exceeded", "context_length_exceeded"],
  ["session-unknown", "invalid_api_key"],
  ["unauthorized", "invalid_api_key"],
]);

function wireType(error: DialectError): string {
  if (error.status === 429) {
    return error.code === "budget-exhausted" ? "insufficient_quota" : "rate_limit_error";
  }
  // Anything below 500 is "stop": this type makes one request in every harness that was measured.
  return error.status >= 500 ? "server_error" : "invalid_request_error";
}

/** Clients look for the vendor's words when the code is not passed on to them. */
function wireMessage(error: DialectError): string {
  if (error.code !== "context-length-exceeded" || /maximum context length/i.test(error.message)) {
    return error.message;
  }
  const [, tokens, limit] = /(\d+) tokens > (\d+)/.exec(error.message) ?? [];
  if (tokens === undefined || limit === undefined) {
    return `This model's maximum context length is exceeded. ${error.message} Please reduce the length of the messages.`;
  }
  return `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`;
}

/** The body of an error, in a response or as the last event of a stream. */
export function errorBody(error: DialectError): unknown {
  return {
    error: {
      message: wireMessage(error),
      type: wireType(error),
      param: error.param ?? (error.code === "context-length-exceeded" ? "messages" : null),
      code: wireCodes.get(error.code) ?? error.code.replaceAll("-", "_"),
    },
  };
}

/** A whole error response. */
export function writeChatError(error: DialectError): DialectResponse {
  const headers: Record<string, string> = { "content-type": "application/json; charset=utf-8" };
  if (error.retryAfterSeconds !== undefined) {
    headers["retry-after"] = String(Math.max(1, Math.ceil(error.retryAfterSeconds)));
  }
  if (error.final === true) headers["x-should-retry"] = "false";
  return { status: error.status, headers, body: JSON.stringify(errorBody(error)) };
}
