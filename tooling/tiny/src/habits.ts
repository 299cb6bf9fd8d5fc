/**
 * How often the attempts of a stored run took a short cut, by part of the run: what training changed in the behaviour.
 */
import { type CapturedCall, jsonMember, parseJsonText } from "@gimbal-rl/core";
import { phaseOf } from "@gimbal-rl/run";
import { openStore } from "@gimbal-rl/store";

/** The looks of the hasty expert (`packages/desk`), which the careful one never takes. */
const hastyLook = /^(?:head -n \d+ \S+|ls conf|grep -rn 'exports\.\w+' src \| sort)$/;

/** Attempts of one part of a run. */
export interface HabitShare {
  /** `eval-before`, `step-0003`, `eval-after`. */
  readonly phase: string;
  readonly attempts: number;
  /** Attempts with a hasty look. */
  readonly hasty: number;
}

/**
 * Counts the habits of a run.
 * @throws {GimbalError} `not-found`, `store-corrupt`.
 */
export async function countHabits(runDir: string): Promise<HabitShare[]> {
  const store = await openStore(runDir, { readOnly: true });
  const hastyByAttempt = new Map<string, boolean>();
  try {
    for await (const { data } of store.read({ kind: "call-end" })) {
      const call = data as CapturedCall;
      if (call.attemptId === null) continue;
      const before = hastyByAttempt.get(call.attemptId) ?? false;
      hastyByAttempt.set(call.attemptId, before || isHasty(call));
    }
  } finally {
    await store.close();
  }
  const shares = new Map<string, HabitShare>();
  for (const [attemptId, hasty] of hastyByAttempt) {
    const phase = phaseOf(attemptId);
    const { attempts, hasty: count } = shares.get(phase) ?? { attempts: 0, hasty: 0 };
    shares.set(phase, { phase, attempts: attempts + 1, hasty: count + (hasty ? 1 : 0) });
  }
  return [...shares.values()];
}

function isHasty({ message }: CapturedCall): boolean {
  return (message?.parts ?? []).some((part) => {
    if (part.type !== "tool-call" || part.name !== "bash") return false;
    try {
      const command = jsonMember(parseJsonText(part.argumentsText), "command");
      return command?.kind === "string" && hastyLook.test(command.value);
    } catch {
      return false; // Arguments that are no JSON: the call was malformed and did nothing.
    }
  });
}
