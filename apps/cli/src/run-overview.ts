/**
 * Stored run -> what `gimbal inspect` shows: phases, steps, coverage, drift, failures.
 */
import type { FidelityReport } from "@gimbal-rl/core";
import { mergeFidelity } from "@gimbal-rl/graph";
import { phaseOf, type RunSummary, type StepReport, toStepReport } from "@gimbal-rl/run";
import { readMetrics } from "@gimbal-rl/trainer";
import { phaseFidelity, readRunJson, type StoredRun } from "./stored-run.js";

/** The attempts of one phase. */
export interface PhaseOverview {
  readonly phase: string;
  readonly attempts: number;
  readonly passed: number;
  /** Mean over tasks of the share of scored attempts with full score; null when none was scored. */
  readonly passAt1: number | null;
  /** Over the scored attempts; null when none was scored. */
  readonly meanScore: number | null;
  readonly calls: number;
  readonly fidelity: FidelityReport;
  /** Attempts by failure class; `none` is success. */
  readonly failures: Readonly<Record<string, number>>;
}

/** A whole run. */
export interface RunOverview {
  readonly runDir: string;
  readonly harness: { readonly id: string; readonly version: string } | null;
  readonly model: string | null;
  readonly seed: number | null;
  readonly sandboxLevel: string | null;
  readonly stepsPlanned: number | null;
  readonly steps: readonly StepReport[];
  readonly phases: readonly PhaseOverview[];
  /** Of the finished report; null while there is none. */
  readonly passAt1: RunSummary["passAt1"];
  readonly heldOutFamily: RunSummary["heldOutFamily"];
  /** Over the training attempts, or over all when there are none. */
  readonly fidelity: FidelityReport;
  readonly discarded: {
    readonly tries: number;
    readonly tokens: number;
    readonly reasons: Readonly<Record<string, number>>;
  };
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function overviewOfPhase(phase: string, run: StoredRun, fidelity: FidelityReport): PhaseOverview {
  const records = run.attempts
    .map(({ record }) => record)
    .filter((record) => phaseOf(record.attempt.attemptId) === phase);
  const byTask = new Map<string, number[]>();
  const failures: Record<string, number> = {};
  for (const { attempt, failureClass, verdict } of records) {
    failures[failureClass] = (failures[failureClass] ?? 0) + 1;
    if (verdict.score === null) continue;
    const passed = byTask.get(attempt.taskId) ?? [];
    byTask.set(attempt.taskId, passed);
    passed.push(verdict.score === 1 ? 1 : 0);
  }
  return {
    phase,
    attempts: records.length,
    passed: records.filter(({ verdict }) => verdict.score === 1).length,
    passAt1: mean([...byTask.values()].map((passed) => mean(passed) ?? 0)),
    meanScore: mean(records.map(({ verdict }) => verdict.score).filter((score) => score !== null)),
    calls: records.reduce((sum, { calls }) => sum + calls, 0),
    fidelity,
    failures,
  };
}

/** Reads everything once. @throws {GimbalError} `store-corrupt`, `config-invalid`. */
export async function readOverview(run: StoredRun): Promise<RunOverview> {
  const { discarded, manifest, runDir } = run;
  const fidelity = await phaseFidelity(run);
  const order = [...new Set(run.attempts.map(({ record }) => phaseOf(record.attempt.attemptId)))];
  const phases = order.map((phase) =>
    overviewOfPhase(phase, run, fidelity.get(phase) ?? mergeFidelity([])),
  );
  const training = phases.filter(({ phase }) => phase.startsWith("step-"));
  const report = (await readRunJson(runDir, "report.json")) as Partial<RunSummary> | null;
  const reasons: Record<string, number> = {};
  for (const { reason, sampledTokens } of discarded) {
    reasons[reason] = (reasons[reason] ?? 0) + sampledTokens;
  }
  return {
    runDir,
    harness: manifest?.harness ?? null,
    model: manifest?.model ?? null,
    seed: manifest?.config.seed ?? null,
    sandboxLevel: manifest?.sandboxLevel ?? run.attempts[0]?.record.sandboxLevel ?? null,
    stepsPlanned: manifest?.config.steps ?? null,
    steps: (await readMetrics(runDir)).map(toStepReport),
    phases,
    passAt1: report?.passAt1 ?? null,
    heldOutFamily: report?.heldOutFamily ?? null,
    fidelity: mergeFidelity((training.length > 0 ? training : phases).map((one) => one.fidelity)),
    discarded: {
      tries: discarded.length,
      tokens: Object.values(reasons).reduce((sum, tokens) => sum + tokens, 0),
      reasons,
    },
  };
}
