/**
 * `all`: several verifiers must agree. Options: `verifiers`, a list of `{kind, options}`.
 *
 * Law: one verifier that could not judge makes the whole not scored, unless another already failed.
 */
import type { Verdict, Verifier, VerifierSpec } from "@gimbal-rl/core";
import { isRecord, readOptions } from "./options.js";

const kind = "all";

/** Makes the verifier over a registry that may contain itself. */
export function createAll(registry: ReadonlyMap<string, Verifier>): Verifier {
  return {
    kind,
    verify: async (input, signal) => {
      const options = readOptions(kind, input.task.verifier.options);
      const list = options.list("verifiers") ?? [];
      options.finish();
      if (list.length === 0) throw options.fail("verifiers", "at least one {kind, options}");
      const parts = list.map((entry) => {
        const known = isRecord(entry) && typeof entry.kind === "string" ? entry.kind : "";
        const verifier = registry.get(known);
        if (verifier === undefined || !isRecord(entry)) {
          throw options.fail("verifiers", `kinds among ${[...registry.keys()].join(", ")}`);
        }
        const spec: VerifierSpec = {
          kind: known,
          options: isRecord(entry.options) ? entry.options : {},
        };
        return { verifier, spec };
      });
      const verdicts: Verdict[] = [];
      for (const { verifier, spec } of parts) {
        const verdict = await verifier.verify(
          { ...input, task: { ...input.task, verifier: spec } },
          signal,
        );
        verdicts.push(verdict);
        // The rest cannot change the score, and costs time.
        if (verdict.score !== null && verdict.score < 1) break;
      }
      return combineVerdicts(verdicts);
    },
  };
}

/** The least score decides, and its failure class with it. */
export function combineVerdicts(verdicts: readonly Verdict[]): Verdict {
  const scored = verdicts.flatMap(({ score }) => (score === null ? [] : [score]));
  const least = Math.min(1, ...scored);
  const score = least < 1 || scored.length === verdicts.length ? least : null;
  const deciding = verdicts.find((verdict) => verdict.score === score);
  return {
    verifier: kind,
    score,
    failureClass: score === 1 ? "none" : (deciding?.failureClass ?? "infrastructure"),
    evidence: verdicts.flatMap((verdict) => verdict.evidence),
  };
}
