/**
 * The one error class of the SDK. Branch on `code`, show `message`, log `details`.
 */
const marker = Symbol.for("gimbal-rl.error");

/** Stable machine-readable reason. Add to the union; never rename a member. */
export type ErrorCode =
  | "aborted"
  | "bad-usage"
  | "budget-exhausted"
  | "checkpoint-invalid"
  | "config-invalid"
  | "context-length-exceeded"
  | "engine-failed"
  | "harness-failed"
  | "harness-missing"
  | "harness-version-mismatch"
  | "invalid-request"
  | "missing-logprobs"
  | "model-invalid"
  | "non-finite"
  | "not-found"
  | "port-in-use"
  | "request-field-refused"
  | "sandbox-failed"
  | "session-closed"
  | "session-unknown"
  | "shape-mismatch"
  | "store-corrupt"
  | "store-unwritable"
  | "template-unsupported"
  | "timeout"
  | "unauthorized"
  | "unavailable"
  | "upstream-status"
  | "verifier-failed";

/** Which part of the system a failure belongs to. */
export type ErrorBoundary =
  | "upstream"
  | "harness"
  | "sandbox"
  | "verifier"
  | "capture"
  | "compute"
  | "config";

/** Optional parts of a {@link GimbalError}. */
export interface GimbalErrorOptions {
  readonly cause?: unknown;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly boundary?: ErrorBoundary;
}

/** Base of every error this SDK throws. Messages say what was found, what was expected and the next step. */
export class GimbalError extends Error {
  static {
    Object.defineProperty(GimbalError.prototype, marker, { value: true });
  }

  override readonly name: string = "GimbalError";
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly boundary: ErrorBoundary | undefined;

  constructor(code: ErrorCode, message: string, options: GimbalErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
    this.boundary = options.boundary;
  }

  /** True for errors from any copy or version of this package, unlike `instanceof`. */
  static is(value: unknown): value is GimbalError {
    return typeof value === "object" && value !== null && marker in value;
  }
}

/** Failures of the moment. Every other code says that the same operation would fail the same way again. */
const retryable: ReadonlySet<ErrorCode> = new Set([
  "engine-failed",
  "harness-failed",
  "sandbox-failed",
  "session-closed",
  "session-unknown",
  "timeout",
  "unavailable",
  "upstream-status",
  "verifier-failed",
]);

/**
 * Whether the same operation may succeed when tried again. The only place that decides it: a wrong setting, a missing
 * install, a broken model or a stop by the caller is never tried again.
 */
export function isRetryable(error: unknown): boolean {
  return GimbalError.is(error) && retryable.has(error.code);
}

/**
 * Ends the work when the signal has fired.
 * @throws {GimbalError} `aborted`; the caller's own reason when that is one already.
 */
export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw toAborted(signal.reason);
}

/**
 * Gives a foreign exception a code and a boundary. A {@link GimbalError} passes through unchanged; what an abort
 * signal made of a wait is `aborted`, whatever the wait was for.
 */
export function attributeError(
  error: unknown,
  code: ErrorCode,
  boundary: ErrorBoundary,
  context: string,
): GimbalError {
  if (GimbalError.is(error)) return error;
  if (error instanceof Error && error.name === "AbortError") return toAborted(error);
  const text = error instanceof Error ? error.message : String(error);
  return new GimbalError(code, `${context}: ${text}`, { cause: error, boundary });
}

/** Node's AbortErrors carry the signal's reason as cause. */
function toAborted(reason: unknown): GimbalError {
  const own = [reason, (reason as { readonly cause?: unknown } | undefined)?.cause].find(
    (one) => GimbalError.is(one) && one.code === "aborted",
  ) as GimbalError | undefined;
  return own ?? new GimbalError("aborted", "Stopped by the caller.", { cause: reason });
}
