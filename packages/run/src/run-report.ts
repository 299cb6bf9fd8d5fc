/**
 * Run -> the data of `report.html`.
 */
import type { AssistantMessage, CapturedCall, Store } from "@gimbal-rl/core";
import type { ReportData, ReportRow, ReportTurn } from "@gimbal-rl/eval";
import { type AttemptRecord, loadCalls } from "@gimbal-rl/rollout";
import type { RunConfig } from "./run-config.js";
import type { BeforeAfter, RunSummary } from "./run-summary.js";
import type { TrainingRunResult } from "./training-run.js";

function toRow(name: string, compared: BeforeAfter): ReportRow {
  const [low, high] = compared.gainCi95;
  const { after, before, tasks } = compared;
  return { name, tasks, before, after, gain: { mean: after - before, low, high } };
}

function assistantText(message: AssistantMessage): string {
  return message.parts
    .map((part) => (part.type === "tool-call" ? `${part.name} ${part.argumentsText}` : part.text))
    .join("\n");
}

function toTurns(calls: readonly CapturedCall[]): ReportTurn[] {
  const last = calls.at(-1);
  if (last === undefined) return [];
  const turns = last.conversation.messages.map((message): ReportTurn => {
    if (message.role === "assistant") return { role: message.role, text: assistantText(message) };
    const texts = message.parts.map((part) => (part.type === "text" ? part.text : "(image)"));
    return { role: message.role, text: texts.join("\n") };
  });
  if (last.message !== null) turns.push({ role: "assistant", text: assistantText(last.message) });
  return turns;
}

/** The attempt worth reading: the longest that failed before and succeeds after, else the longest of the last ones. */
function pickAttempt({ after, before }: TrainingRunResult): AttemptRecord | null {
  const failedBefore = new Set(
    before?.records
      .filter((record) => record.verdict.score !== 1)
      .map((record) => record.attempt.taskId),
  );
  const solved = after?.records.filter((record) => record.verdict.score === 1) ?? [];
  const gained = solved.filter((record) => failedBefore.has(record.attempt.taskId));
  const candidates = [gained, solved, after?.records ?? []].find((list) => list.length > 0) ?? [];
  return candidates.reduce<AttemptRecord | null>(
    (best, record) => (best === null || record.calls > best.calls ? record : best),
    null,
  );
}

function countsText(counts: readonly (readonly [reason: string, tokens: number])[]): string {
  return counts.map(([reason, tokens]) => `${reason} ${tokens}`).join(", ") || "none";
}

/** Collects what the report page shows. */
export async function buildRunReport(
  config: RunConfig,
  summary: RunSummary,
  result: TrainingRunResult,
  store: Store,
): Promise<ReportData> {
  const picked = pickAttempt(result);
  const calls =
    picked === null
      ? []
      : ((await loadCalls(store, new Set([picked.sessionId]))).get(picked.sessionId) ?? []);
  const rows: ReportRow[] = [];
  if (summary.passAt1 !== null) rows.push(toRow("held-out, trained families", summary.passAt1));
  if (summary.heldOutFamily !== null)
    rows.push(toRow("family held out whole", summary.heldOutFamily));
  for (const [family, compared] of Object.entries(summary.families))
    rows.push(toRow(family, compared));
  const level = result.after?.records[0]?.sandboxLevel ?? "process";
  const leftOut = summary.leftOut.map(({ reason, tokens }) => [reason, tokens] as const);
  const facts: [string, string][] = [
    ["harness", `${summary.harness} ${summary.harnessVersion}`],
    ["seed", String(summary.seed)],
    ["steps", `${summary.steps} of ${config.groupsPerStep} groups of ${config.groupSize}`],
    [
      "coverage (trained / sampled tokens)",
      `${summary.coverage.toFixed(4)} (${summary.trainedTokens} / ${summary.sampledTokens})`,
    ],
    ["left out of training, tokens by reason", countsText(leftOut)],
    [
      "discarded with repeated or interrupted tries, tokens",
      `${summary.discarded.tokens}: ${countsText(Object.entries(summary.discarded.reasons))}`,
    ],
    ["largest log-probability mismatch", String(summary.logprobMismatchMax)],
    ["wall-clock", `${summary.wallSeconds.toFixed(0)} s`],
    ["sandbox level", level],
    ...(config.control === null ? [] : [["control", config.control] as [string, string]]),
    ...Object.entries(config.facts).map(([name, value]): [string, string] => [name, String(value)]),
  ];
  return {
    title: `Gimbal run, seed ${summary.seed}`,
    facts,
    rows,
    steps: result.steps.map(({ kl, reward, step }) => ({ step, reward, kl })),
    failures: summary.failures,
    attempt: picked === null ? null : { title: picked.attempt.taskId, turns: toTurns(calls) },
    notes: [
      level === "namespace"
        ? "Attempts ran in mount and process namespaces: an agent saw its own home, its workspace and the harness, nothing else of this machine's files."
        : "Attempts ran at sandbox level process: own home, process group and limits, but no claim against a hostile reader of the same user.",
    ],
  };
}
