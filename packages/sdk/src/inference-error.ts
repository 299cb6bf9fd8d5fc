/**
 * Failures of the inference server on the wire: the gateway's table, with the field that a 400 is about.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { DialectError } from "@gimbal-rl/dialects";
import { toWireError } from "@gimbal-rl/proxy";

/** The error to send for any exception. Foreign exceptions tell the client nothing about our inside. */
export function toInferenceError(error: unknown): DialectError {
  const wire = toWireError(error);
  const field = GimbalError.is(error) ? error.details.field : undefined;
  return typeof field === "string" ? { ...wire, param: field } : wire;
}
