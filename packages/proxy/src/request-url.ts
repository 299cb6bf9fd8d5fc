/** The target of a request as a URL. */
import type { IncomingMessage } from "node:http";
import { GimbalError } from "@gimbal-rl/core";

/**
 * Path and query of a request; the host is a placeholder, because nothing is decided by it.
 * @throws {GimbalError} `invalid-request` for a target that is no URL, such as `//`.
 */
export function requestUrl(request: IncomingMessage): URL {
  try {
    return new URL(request.url ?? "/", "http://localhost");
  } catch (error) {
    throw new GimbalError("invalid-request", "The request target is not a valid path.", {
      cause: error,
    });
  }
}
