/**
 * `gimbal inspect`: a stored run, or one attempt of it turn by turn.
 */
import { resolve } from "node:path";
import { intervalText } from "@gimbal-rl/eval";
import type { Command } from "commander";
import {
  attemptText,
  listSessions,
  readAttempt,
  readSession,
  type SessionRow,
  sessionText,
} from "../attempt-view.js";
import type { CliContext } from "../context.js";
import { countsText, coverageText, percent, points } from "../format.js";
import { formatTable } from "../output.js";
import { type RunOverview, readOverview } from "../run-overview.js";
import { openStoredRun, type StoredRun } from "../stored-run.js";

interface InspectFlags {
  readonly attempt?: string;
  readonly attempts?: boolean;
  readonly session?: string;
  readonly full?: boolean;
  readonly json?: boolean;
}

/** Characters of a message shown without `--full`. */
const shownCharacters = 1200;

/** Adds the command. */
export function register(program: Command, context: CliContext): void {
  program
    .command("inspect")
    .description(
      "Show a stored run, finished or not: steps, pass@1, coverage and drift, failures by class; or one attempt turn by turn.",
    )
    .argument("<run>", "run folder")
    .option("--attempts", "list the finished attempts")
    .option("--attempt <id>", "show this attempt; a part of its id is enough when only one has it")
    .option("--session <id>", "show the calls of this session, of an attempt or not")
    .option("--full", "do not shorten messages")
    .option("--json", "print the result as one JSON object on stdout")
    .addHelpText(
      "after",
      "\nExamples:\n  $ gimbal inspect runs/mine\n  $ gimbal inspect runs/mine --attempts\n  $ gimbal inspect runs/mine --attempt eval-after/desk/heldout/fix-operator/f90eb515ce4490c8/0\n",
    )
    .action(async (folder: string, flags: InspectFlags) => inspect(folder, flags, context));
}

async function inspect(folder: string, flags: InspectFlags, context: CliContext): Promise<void> {
  const output = context.output(flags);
  await using run = await openStoredRun(resolve(context.cwd, folder));
  if (flags.attempt !== undefined) {
    const view = await readAttempt(run, flags.attempt);
    const limit = flags.full === true ? Number.POSITIVE_INFINITY : shownCharacters;
    output.text(attemptText(view, limit));
    output.json(view);
    return;
  }
  if (flags.session !== undefined) {
    const view = await readSession(run, flags.session);
    const limit = flags.full === true ? Number.POSITIVE_INFINITY : shownCharacters;
    output.text(sessionText(view, limit));
    output.json(view);
    return;
  }
  if (flags.attempts === true) {
    const attempts = toRows(run);
    output.text(attemptsText(attempts));
    output.json({ runDir: run.runDir, attempts });
    return;
  }
  const overview = await readOverview(run);
  // `gimbal proxy --store` keeps sessions and no attempts.
  const sessions = run.attempts.length === 0 ? await listSessions(run) : [];
  output.text(overviewText(overview));
  if (sessions.length > 0) output.text(`\n${sessionsText(sessions)}`);
  output.json({ ...overview, sessions });
}

interface AttemptRow {
  readonly attemptId: string;
  readonly failureClass: string;
  readonly score: number | null;
  readonly calls: number;
  readonly sampledTokens: number;
}

function toRows({ attempts }: StoredRun): AttemptRow[] {
  return attempts.map(({ record }) => ({
    attemptId: record.attempt.attemptId,
    failureClass: record.failureClass,
    score: record.verdict.score,
    calls: record.calls,
    sampledTokens: record.sampledTokens,
  }));
}

function attemptsText(rows: readonly AttemptRow[]): string {
  if (rows.length === 0) return "No finished attempt is stored.";
  return formatTable(
    ["attempt", "failure class", "score", "calls", "sampled"],
    rows.map(({ attemptId, calls, failureClass, sampledTokens, score }) => [
      ...[attemptId, failureClass, score === null ? "-" : score.toFixed(2)],
      ...[String(calls), String(sampledTokens)],
    ]),
    [0, 1],
  );
}

function sessionsText(sessions: readonly SessionRow[]): string {
  return formatTable(
    ["session", "calls", "sampled"],
    sessions.map(({ calls, sampledTokens, sessionId }) => [
      ...[sessionId, String(calls), String(sampledTokens)],
    ]),
  );
}

function stepsTable({ steps }: RunOverview): string {
  return formatTable(
    ["step", "reward", "pass", "signal", "coverage", "kl", "tokens", "loss", "|gradient|", "s"],
    steps.map((step) => [
      String(step.step),
      step.reward.toFixed(3),
      percent(step.passRate),
      String(step.groupsWithSignal),
      step.sampledTokens === 0 ? "-" : step.coverage.toFixed(3),
      step.kl.toFixed(4),
      `${step.trainedTokens}/${step.sampledTokens}`,
      step.loss.toFixed(4),
      step.gradientNorm.toFixed(3),
      (step.seconds.wall + step.seconds.training).toFixed(1),
    ]),
  );
}

function phasesTable({ phases }: RunOverview): string {
  return formatTable(
    ["phase", "attempts", "passed", "pass@1", "calls", "sampled", "trainable", "malformed"],
    phases.map(({ attempts, calls, fidelity, passAt1, passed, phase }) => [
      phase,
      String(attempts),
      String(passed),
      percent(passAt1),
      String(calls),
      String(fidelity.sampledTokens),
      fidelity.sampledTokens === 0 ? "-" : percent(fidelity.coverage),
      String(fidelity.malformedCalls),
    ]),
  );
}

function failuresTable({ phases }: RunOverview): string {
  const classes = [...new Set(phases.flatMap(({ failures }) => Object.keys(failures)))].sort();
  return formatTable(
    ["failure class", ...phases.map(({ phase }) => phase)],
    classes.map((name) => [name, ...phases.map(({ failures }) => String(failures[name] ?? 0))]),
  );
}

function overviewText(overview: RunOverview): string {
  const { discarded, fidelity, harness, heldOutFamily, passAt1, seed, steps, stepsPlanned } =
    overview;
  const sections = [
    [
      overview.runDir,
      harness === null ? null : `${harness.id} ${harness.version}`,
      seed === null ? null : `seed ${seed}`,
      overview.sandboxLevel === null ? null : `sandbox ${overview.sandboxLevel}`,
      stepsPlanned === null ? null : `${steps.length} of ${stepsPlanned} steps`,
    ]
      .filter((part) => part !== null)
      .join("  "),
  ];
  if (steps.length > 0) sections.push(stepsTable(overview).trimEnd());
  if (overview.phases.length > 0) {
    sections.push(phasesTable(overview).trimEnd(), failuresTable(overview).trimEnd());
  } else sections.push("No finished attempt is stored.");
  const gains = [
    ["held-out tasks, trained families", passAt1] as const,
    ["family held out whole", heldOutFamily] as const,
  ].flatMap(([name, compared]) => {
    if (compared === null) return [];
    const [low, high] = compared.gainCi95;
    return [
      `pass@1, ${name} (n ${compared.tasks}): ${percent(compared.before)} -> ${percent(compared.after)}, gain's 95 % interval in points ${intervalText({ low, high }, compared.tasks, points)}`,
    ];
  });
  sections.push(
    [
      ...gains,
      coverageText(fidelity),
      `links ${countsText(fidelity.links)}; branches ${fidelity.branches}; malformed calls ${fidelity.malformedCalls}`,
      `discarded tries ${discarded.tries}, tokens ${discarded.tokens}${discarded.tries === 0 ? "" : ` (${countsText(discarded.reasons)})`}`,
    ].join("\n"),
  );
  return `${sections.join("\n\n")}\n`;
}
