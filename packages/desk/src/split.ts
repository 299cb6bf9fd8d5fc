/**
 * Which split a member belongs to.
 *
 * Law: the split is a function of the member alone (its whole parameter tuple, wording apart), so two splits can
 * never share a member, whatever the seeds.
 */
import { hashToSeed, type Task } from "@gimbal-rl/core";
import { hiddenTestIdentity } from "./hidden-cases.js";
import type { DeskFamily, DeskMember } from "./member.js";

/** `demonstration`: expert runs for SFT. `pivot`: expert runs that the policy never sees in SFT. */
export type DeskSplit = Task["split"];

/** The identity of a member: its family and its parameters, as JSON with sorted keys; how its tests are written is no part. */
export function memberKey(family: DeskFamily, member: DeskMember): string {
  const gradingFiles = Object.fromEntries(
    Object.entries(member.gradingFiles).map(([path, text]) => [path, hiddenTestIdentity(text)]),
  );
  return JSON.stringify([family.name, { ...member, gradingFiles }], (_, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

/** The split of a member. Shares: train 50 %, heldout 20 %, demonstration 20 %, pivot 10 %. */
export function splitOf(family: DeskFamily, member: DeskMember): DeskSplit {
  if (!family.trained) return "heldout-family";
  const bucket = hashToSeed("desk-split", memberKey(family, member)) % 10;
  if (bucket < 5) return "train";
  if (bucket < 7) return "heldout";
  return bucket < 9 ? "demonstration" : "pivot";
}
