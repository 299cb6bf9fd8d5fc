/**
 * Collected attempts -> TrajectoryGroups: a pure function of what is stored.
 */
import type {
  CapturedCall,
  FidelityReport,
  Store,
  Trajectory,
  TrajectoryGroup,
} from "@gimbal-rl/core";
import { buildTrajectory, mergeFidelity } from "@gimbal-rl/graph";
import type { AttemptRecord } from "./attempt-record.js";
import { type CollectedGroup, loadCalls } from "./collect-attempts.js";

/** Groups ready for advantages, with the fidelity of all of them together. */
export interface BuiltGroups {
  readonly groups: readonly TrajectoryGroup[];
  readonly fidelity: FidelityReport;
}

const budgetClasses: readonly string[] = [
  "call-budget",
  "token-budget",
  "context-overflow",
  "wall-clock",
  "output-limit",
];

/** The trajectory of one finished attempt, as training sees it, from its calls. */
export function buildAttemptTrajectory(
  record: Pick<AttemptRecord, "attempt" | "failureClass">,
  calls: readonly CapturedCall[],
): Trajectory {
  return buildTrajectory(record.attempt.attemptId, calls, {
    // A budget cut the last call; it is trained with the attempt's score, cut or not.
    trainUndelivered: budgetClasses.includes(record.failureClass),
  });
}

/**
 * Reads the calls of the collected attempts and builds their trajectories.
 * @param after - Sequence of a stored event that came before all of them, so that a long log is not read from its start.
 */
export async function buildGroups(
  collected: readonly CollectedGroup[],
  store: Store,
  after = 0,
): Promise<BuiltGroups> {
  const records = collected.flatMap((group) => group.records);
  const calls = await loadCalls(store, new Set(records.map((record) => record.sessionId)), after);
  const groups = collected.map(({ plan, records: own }): TrajectoryGroup => {
    const members = own.map((record) => ({
      trajectory: buildAttemptTrajectory(record, calls.get(record.sessionId) ?? []),
      verdict: record.verdict,
    }));
    return { groupId: plan.groupId, taskId: plan.task.taskId, members };
  });
  const reports = groups.flatMap((group) =>
    group.members.map((member) => member.trajectory.fidelity),
  );
  return { groups, fidelity: mergeFidelity(reports) };
}
