/**
 * What `GET /v1/sessions/{id}/trajectory` answers.
 */
import {
  type AttemptId,
  asId,
  type CapturedCall,
  GimbalError,
  type Trajectory,
} from "@gimbal-rl/core";
import { buildTrajectory } from "@gimbal-rl/graph";

/**
 * The trajectory of a session's calls; a session without an attempt stands for one. Null when it made no call.
 * @throws {GimbalError} `invalid-request` for a merge policy that is not known.
 */
export function sessionTrajectory(
  calls: readonly CapturedCall[],
  policy: string,
): Trajectory | null {
  if (policy !== "strict") {
    throw new GimbalError(
      "invalid-request",
      `Merge policy ${JSON.stringify(policy)} is not known; use strict.`,
    );
  }
  const first = calls[0];
  if (first === undefined) return null;
  return buildTrajectory(first.attemptId ?? asId<AttemptId>(first.sessionId), calls);
}
