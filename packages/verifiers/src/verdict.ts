/**
 * From evidence to a Verdict, the same way for every verifier.
 *
 * Laws: the score is 1 when all evidence passed, else 0, judged on the clean copy alone; tampering is always in the
 * evidence and explains a failure, but never changes a score.
 */
import {
  attributeError,
  type Evidence,
  type FailureClass,
  type Verdict,
  type VerifyInput,
} from "@gimbal-rl/core";

/** Longest text of one piece of evidence, in characters. */
const maxEvidenceText = 2_000;

/** Builds one piece of evidence; long text keeps its beginning and its end. */
export function evidence(kind: string, passed: boolean, text: string): Evidence {
  const half = maxEvidenceText / 2;
  const short =
    text.length <= maxEvidenceText ? text : `${text.slice(0, half)} […] ${text.slice(-half)}`;
  return { kind, passed, text: short };
}

/** The verdict of completed checks. */
export function judge(
  verifier: string,
  input: Pick<VerifyInput, "diff">,
  checks: readonly Evidence[],
  tampered: readonly string[],
): Verdict {
  const passed = checks.length > 0 && checks.every((check) => check.passed);
  const { changed, refused } = input.diff;
  const notes = [
    ...tampered.map((path) =>
      evidence("protected-path", false, `${path} was changed; the clean copy keeps the original.`),
    ),
    ...refused.map(({ path, reason }) =>
      evidence("refused-path", false, `${path || "(workspace)"} was not carried over: ${reason}.`),
    ),
  ];
  let failureClass: FailureClass = "none";
  if (!passed) {
    if (tampered.length > 0) failureClass = "tampered";
    else if (Object.keys(changed).length === 0 && refused.length === 0) failureClass = "no-change";
    else failureClass = "wrong-result";
  }
  return { verifier, score: passed ? 1 : 0, failureClass, evidence: [...checks, ...notes] };
}

/** The verdict when the verifier itself failed: not scored, which is not zero. */
export function unscored(verifier: string, error: unknown): Verdict {
  const { message } = attributeError(error, "verifier-failed", "verifier", `${verifier} failed`);
  return {
    verifier,
    score: null,
    failureClass: "infrastructure",
    evidence: [evidence("verifier-error", false, message)],
  };
}
