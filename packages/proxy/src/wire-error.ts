/**
 * How a failure looks on the wire: one table from error codes to status, retry advice and finality.
 *
 * "Stop now" is 400 with `x-should-retry: false`: one request in every harness seen. "Come back later" always carries
 * retry-after. 413 is never sent: one harness retries it without end.
 */
import { type ErrorCode, GimbalError } from "@gimbal-rl/core";
import type { DialectError } from "@gimbal-rl/dialects";

interface WireRule {
  readonly status: number;
  readonly retryAfterSeconds?: number;
  readonly final?: boolean;
}

const rules: Partial<Record<ErrorCode, WireRule>> = {
  aborted: { status: 503, retryAfterSeconds: 1 },
  "budget-exhausted": { status: 400, final: true },
  "context-length-exceeded": { status: 400 },
  "engine-failed": { status: 503, retryAfterSeconds: 2 },
  "invalid-request": { status: 400 },
  "not-found": { status: 404 },
  "request-field-refused": { status: 400 },
  "session-closed": { status: 409, final: true },
  "session-unknown": { status: 401 },
  "template-unsupported": { status: 400 },
  timeout: { status: 504, retryAfterSeconds: 2 },
  unauthorized: { status: 401 },
  unavailable: { status: 503, retryAfterSeconds: 2 },
};

/** The error to send for any exception. Foreign exceptions tell the client nothing about our inside. */
export function toWireError(error: unknown): DialectError {
  if (!GimbalError.is(error)) {
    return { status: 500, code: "internal", message: "The gateway failed to answer this call." };
  }
  const rule = rules[error.code] ?? { status: 500 };
  return {
    status: rule.status,
    code: error.code,
    message: error.message,
    ...(rule.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: rule.retryAfterSeconds }),
    ...(rule.final === undefined ? {} : { final: rule.final }),
  };
}
