/**
 * Run events as bars and lines.
 */
import { intervalText } from "@gimbal-rl/eval";
import type { RunConfig, RunEvent, RunPhase, RunSummary, StepReport } from "@gimbal-rl/run";
import { countsText, coverageText, percent, points } from "./format.js";
import { formatTable, type Output } from "./output.js";
import type { ProgressBar } from "./progress.js";

const labels: Readonly<Record<RunPhase, string>> = {
  "eval-before": "Held-out tasks, before",
  train: "Training attempts",
  "eval-after": "Held-out tasks, after",
};

type RunSize = Pick<RunConfig, "groupsPerStep" | "steps">;

/** One line per step. */
function stepLine(report: StepReport, { groupsPerStep, steps: total }: RunSize): string {
  const {
    coverage,
    groupsWithSignal,
    kl,
    passRate,
    reward,
    rows,
    sampledTokens,
    seconds,
    step,
    trainedTokens,
  } = report;
  const leftOut = (report.leftOut ?? []).map(({ reason, tokens }) => `${reason} ${tokens}`);
  return [
    `step ${String(step).padStart(String(total).length)}/${total}`,
    `reward ${reward.toFixed(3)}`,
    `pass ${percent(passRate)}`,
    // Groups whose attempts did not all score the same: only they move the weights.
    `signal ${groupsWithSignal}/${groupsPerStep}`,
    `coverage ${coverage.toFixed(3)}`,
    `kl ${kl.toFixed(4)}`,
    `tokens ${trainedTokens}/${sampledTokens}`,
    ...(leftOut.length === 0 ? [] : [`left out: ${leftOut.join(", ")}`]),
    // Computed once each, however many attempts share them.
    `unique ${rows}`,
    `${(seconds.wall + seconds.training).toFixed(1)} s`,
  ].join("  ");
}

/** Shows a run while it goes on. */
export function createRunProgress(output: Output, size: RunSize): (event: RunEvent) => void {
  let bar: ProgressBar | null = null;
  let passed = 0;
  return (event) => {
    switch (event.type) {
      case "phase-start":
        passed = 0;
        bar = output.bar(labels[event.phase], event.total);
        break;
      case "attempt-end":
        if (event.record.verdict.score === 1) passed += 1;
        bar?.update(event.done, `${passed} passed`);
        break;
      case "attempt-discarded":
        output.line(`  an attempt is run again: ${event.reason}`);
        break;
      case "step-end":
        output.line(stepLine(event.report, size));
        break;
      case "phase-end":
        bar?.end();
        bar = null;
        break;
      default:
        event satisfies never;
    }
  };
}

const nothingLearned =
  "Nothing was learned: in no group did the attempts score differently, so no step changed the policy. Take tasks that it passes sometimes (--task-file), a model that can do more (--model), or more attempts per group (--group-size).\n";

/** The closing words of a run: pass@1, what part of the sampled tokens was trained, and why the rest was not. */
export function summaryText(summary: RunSummary): string {
  const rows: string[][] = [];
  const add = (name: string, compared: RunSummary["passAt1"]): void => {
    if (compared === null) return;
    const { after, before, gainCi95, tasks } = compared;
    const interval = intervalText({ low: gainCi95[0], high: gainCi95[1] }, tasks, points);
    rows.push([
      name,
      String(tasks),
      percent(before),
      percent(after),
      points(after - before),
      interval,
    ]);
  };
  add("held-out tasks, trained families", summary.passAt1);
  add("family held out whole", summary.heldOutFamily);
  const { reasons, tokens } = summary.discarded;
  return [
    rows.length === 0
      ? ""
      : formatTable(["pass@1", "n", "before", "after", "gain (points)", "95 % interval"], rows),
    `${coverageText(summary)}\n`,
    `discarded tokens ${tokens}${tokens === 0 ? "" : ` (${countsText(reasons)})`}\n`,
    summary.steps > 0 && summary.stepsWithSignal === 0 ? nothingLearned : "",
  ].join("");
}
