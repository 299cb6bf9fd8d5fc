/**
 * From a member to the Task that a harness is given.
 *
 * Law: success is decided by state. Every file of the workspace that the agent may change must end as wanted, so that
 * deleting or spoiling the others is a failure; protected files never reach grading.
 */
import {
  asId,
  type Budgets,
  hashToSeed,
  type Task,
  type TaskId,
  type VerifierSpec,
} from "@gimbal-rl/core";
import { type FileExpectation, isProtectedPath } from "@gimbal-rl/verifiers";
import { hiddenCaseName, hiddenCases } from "./hidden-cases.js";
import { renderInstruction } from "./instruction.js";
import type { DeskFamily, DeskMember } from "./member.js";
import { type DeskSplit, memberKey } from "./split.js";

/** The expert needs at most 5 calls of at most 90 tokens; the rest is room for detours. */
const budgets: Budgets = {
  maxCalls: 10,
  maxSampledTokens: 1000,
  maxTokensPerCall: 200,
  maxContextTokens: 6000,
  wallClockMs: 120_000,
};

/** Words a member and attaches its verifier. */
export function memberToTask(
  family: DeskFamily,
  member: DeskMember,
  phrasing: number,
  split: DeskSplit,
): Task {
  const key = memberKey(family, member);
  const hex = [0, 1]
    .map((salt) => hashToSeed("desk-task", salt, key, phrasing).toString(16).padStart(8, "0"))
    .join("");
  return {
    taskId: asId<TaskId>(`desk/${split}/${family.name}/${hex}`),
    suite: "desk",
    family: family.name,
    split,
    instruction: renderInstruction(family, member.variant, phrasing, member.fields),
    files: sortKeys(member.files),
    protectedPaths: [".git/", ...member.protectedPaths],
    gradingFiles: member.gradingFiles,
    verifier: verifierOf(member),
    budgets,
  };
}

function verifierOf(member: DeskMember): VerifierSpec {
  const tests = Object.keys(member.gradingFiles);
  const files: Record<string, FileExpectation> = {};
  for (const path of Object.keys(sortKeys({ ...member.files, ...member.wanted }))) {
    const wanted = member.wanted[path];
    if (wanted === undefined) {
      if (!isProtectedPath(path, member.protectedPaths)) files[path] = { unchanged: true };
      // A repaired source may be written in another way; the hidden tests decide on it.
    } else if (tests.length === 0) files[path] = { normalised: wanted };
  }
  const state: VerifierSpec = { kind: "file-state-equals", options: { files } };
  if (tests.length === 0) return state;
  const cases = Object.values(member.gradingFiles).flatMap(hiddenCases);
  const expected = Object.fromEntries(cases.map((one) => [hiddenCaseName(one), "pass"]));
  const run: VerifierSpec = { kind: "node-tests-pass", options: { files: tests, expected } };
  return Object.keys(files).length === 0
    ? run
    : { kind: "all", options: { verifiers: [state, run] } };
}

function sortKeys(record: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
