/**
 * A list of graded findings about a stored run.
 */
import type { FindingLevel } from "@gimbal-rl/graph";

/** One finding. */
export interface RunFinding {
  readonly level: FindingLevel;
  readonly code: string;
  /** A call, an attempt, a step or a file. */
  readonly where: string;
  readonly message: string;
}

/** Collects findings. */
export class Findings {
  readonly all: RunFinding[] = [];

  add(level: FindingLevel, code: string, where: string, message: string): void {
    this.all.push({ level, code, where, message });
  }

  of(level: FindingLevel): RunFinding[] {
    return this.all.filter((finding) => finding.level === level);
  }
}

/** Examples shown per code. */
const shownExamples = 3;

/** Findings of one level as lines: a count per code and a few examples. */
export function findingLines(findings: readonly RunFinding[]): string[] {
  const byCode = new Map<string, RunFinding[]>();
  for (const finding of findings) {
    const list = byCode.get(finding.code) ?? [];
    byCode.set(finding.code, list);
    list.push(finding);
  }
  return [...byCode].flatMap(([code, list]) => [
    `  ${code} (${list.length})`,
    ...list.slice(0, shownExamples).map(({ message, where }) => `    ${where}: ${message}`),
    ...(list.length > shownExamples
      ? [`    ... ${list.length - shownExamples} more (--json)`]
      : []),
  ]);
}
