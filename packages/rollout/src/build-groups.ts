/**
 * Collected attempts -> TrajectoryGroups: a pure function of what is stored.
 */
import type { FidelityReport, Store, TrajectoryGroup } from "@gimbal-rl/core";
import { buildTrajectory, mergeFidelity } from "@gimbal-rl/graph";
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

/** Reads the calls of the collected attempts and builds their trajectories. */
export async function buildGroups(
  collected: readonly CollectedGroup[],
  store: Store,
): Promise<BuiltGroups> {
  const records = collected.flatMap((group) => group.records);
  const calls = await loadCalls(store, new Set(records.map((record) => record.sessionId)));
  const groups = collected.map(({ plan, records: own }): TrajectoryGroup => {
    const members = own.map((record) => ({
      trajectory: buildTrajectory(record.attempt.attemptId, calls.get(record.sessionId) ?? [], {
        // A budget cut the last call; it is trained with the attempt's score, cut or not.
        trainUndelivered: budgetClasses.includes(record.failureClass),
      }),
      verdict: record.verdict,
    }));
    return { groupId: plan.groupId, taskId: plan.task.taskId, members };
  });
  const reports = groups.flatMap((group) =>
    group.members.map((member) => member.trajectory.fidelity),
  );
  return { groups, fidelity: mergeFidelity(reports) };
}
