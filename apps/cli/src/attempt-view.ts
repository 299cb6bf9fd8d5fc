/**
 * One stored attempt, turn by turn.
 */
import { type CapturedCall, GimbalError, type Message } from "@gimbal-rl/core";
import type { AttemptRecord } from "@gimbal-rl/rollout";
import type { StoredRun } from "./stored-run.js";

/** One model call of an attempt. */
export interface TurnView {
  readonly callId: string;
  readonly index: number;
  /** Messages the harness added since the previous call; all of them at the first. */
  readonly added: readonly Message[];
  readonly message: CapturedCall["message"];
  readonly promptTokens: number;
  readonly reusedTokens: number;
  readonly sampledTokens: number;
  /** Nats; null when nothing was sampled. */
  readonly meanLogprob: number | null;
  readonly policyVersions: readonly string[];
  readonly finishReason: string;
  readonly issues: readonly string[];
  readonly forkReason: string | null;
}

/** An attempt with its turns. */
export interface AttemptView {
  readonly record: AttemptRecord;
  readonly turns: readonly TurnView[];
}

/** A session of the store with its calls. */
export interface SessionView {
  readonly sessionId: string;
  readonly turns: readonly TurnView[];
}

/** A session as it is listed. */
export interface SessionRow {
  readonly sessionId: string;
  readonly calls: number;
  readonly sampledTokens: number;
}

/** Counts the calls of every session, in order of their first call. */
export async function listSessions({ store }: Pick<StoredRun, "store">): Promise<SessionRow[]> {
  const rows = new Map<string, SessionRow>();
  for await (const { data } of store.read({ kind: "call-end" })) {
    const { sampledIds, sessionId } = data as CapturedCall;
    const { calls, sampledTokens } = rows.get(sessionId) ?? { calls: 0, sampledTokens: 0 };
    const tokens = sampledTokens + sampledIds.length;
    rows.set(sessionId, { sessionId, calls: calls + 1, sampledTokens: tokens });
  }
  return [...rows.values()];
}

/** Finds an attempt by its id, or by a part that only one id has. */
function findAttempt({ attempts, runDir }: StoredRun, wanted: string): AttemptRecord {
  const records = attempts.map(({ record }) => record);
  const exact = records.find(({ attempt }) => attempt.attemptId === wanted);
  if (exact !== undefined) return exact;
  const matches = records.filter(({ attempt }) => attempt.attemptId.includes(wanted));
  const [only] = matches;
  if (only !== undefined && matches.length === 1) return only;
  const shown = (matches.length > 0 ? matches : records)
    .slice(0, 3)
    .map(({ attempt }) => attempt.attemptId);
  const count = matches.length;
  const found = count === 0 ? "No attempt" : `${count} attempts`;
  const examples = shown.length === 0 ? "the run has none" : `for example ${shown.join(", ")}`;
  throw new GimbalError(
    "not-found",
    `${found} of ${runDir} ${count === 0 ? "matches" : "match"} ${JSON.stringify(wanted)}. Give one id (${examples}).`,
  );
}

function toTurn(call: CapturedCall, previous: CapturedCall | undefined): TurnView {
  const { messages } = call.conversation;
  // The assistant turn that was sampled last comes back first; what follows it is new.
  const known = previous === undefined ? 0 : previous.conversation.messages.length + 1;
  const isContinued = previous !== undefined && messages.length >= known;
  const { logprobs, sampledIds } = call;
  return {
    callId: call.callId,
    index: call.index,
    added: isContinued ? messages.slice(known) : messages,
    message: call.message,
    promptTokens: call.promptIds.length,
    reusedTokens: call.tape.reusedTokens,
    sampledTokens: sampledIds.length,
    meanLogprob:
      logprobs.length === 0 ? null : logprobs.reduce((sum, one) => sum + one, 0) / logprobs.length,
    policyVersions: [...new Set(call.policyRuns.map(({ policyVersion }) => policyVersion))],
    finishReason: call.finishReason,
    issues: call.issues,
    forkReason: call.tape.forkReason,
  };
}

async function readTurns({ store }: StoredRun, sessionId: string): Promise<TurnView[]> {
  const calls: CapturedCall[] = [];
  for await (const { data } of store.read({ kind: "call-end" })) {
    const call = data as CapturedCall;
    if (call.sessionId === sessionId) calls.push(call);
  }
  calls.sort((a, b) => a.index - b.index);
  return calls.map((call, i) => toTurn(call, calls[i - 1]));
}

/** Reads one attempt. @throws {GimbalError} `not-found`. */
export async function readAttempt(run: StoredRun, wanted: string): Promise<AttemptView> {
  const record = findAttempt(run, wanted);
  return { record, turns: await readTurns(run, record.sessionId) };
}

/** Reads one session, of an attempt or not. @throws {GimbalError} `not-found`. */
export async function readSession(run: StoredRun, sessionId: string): Promise<SessionView> {
  const turns = await readTurns(run, sessionId);
  if (turns.length > 0) return { sessionId, turns };
  const message = `No session of ${run.runDir} with a stored call is ${JSON.stringify(sessionId)}. Give the whole id of one.`;
  throw new GimbalError("not-found", message);
}

function messageText(message: Message | NonNullable<CapturedCall["message"]>): string {
  const texts = message.parts.map((part) => {
    switch (part.type) {
      case "text":
        return part.text;
      case "reasoning":
        return `<think>${part.text}</think>`;
      case "tool-call":
        return `${part.name} ${part.argumentsText}`;
      case "image":
        return "(image)";
      default:
        return part satisfies never;
    }
  });
  return texts.join("\n");
}

function indent(text: string, limit: number): string {
  const cut =
    text.length <= limit
      ? text
      : `${text.slice(0, limit)}\n... ${text.length - limit} more characters (--full)`;
  return cut
    .split("\n")
    .map((line) => `    ${line}`.trimEnd())
    .join("\n");
}

/**
 * The attempt as text.
 * @param limit - Characters shown of each message.
 */
export function attemptText({ record, turns }: AttemptView, limit: number): string {
  const { attempt, failureClass, outcome, sampledTokens, seconds, verdict } = record;
  const lines = [
    `attempt ${attempt.attemptId}`,
    `task ${attempt.taskId}  seed ${attempt.seed}  policy ${attempt.policyVersion}`,
    `score ${verdict.score ?? "none"}  class ${failureClass}  harness ${outcome.status}  ${turns.length} calls  ${sampledTokens} sampled tokens  ${seconds.wall.toFixed(1)} s`,
    ...verdict.evidence.map(
      ({ kind, passed, text }) =>
        `  ${passed ? "passed" : "failed"}  ${kind}: ${text.replace(/\s+/g, " ").slice(0, 300)}`,
    ),
  ];
  return `${[...lines, ...turnLines(turns, limit)].join("\n")}\n`;
}

/**
 * The session as text.
 * @param limit - Characters shown of each message.
 */
export function sessionText({ sessionId, turns }: SessionView, limit: number): string {
  return `${[`session ${sessionId}  ${turns.length} calls`, ...turnLines(turns, limit)].join("\n")}\n`;
}

function turnLines(turns: readonly TurnView[], limit: number): string[] {
  const lines: string[] = [];
  for (const turn of turns) {
    for (const message of turn.added) {
      lines.push("", `  ${message.role}`, indent(messageText(message), limit));
    }
    const facts = [
      `prompt ${turn.promptTokens} (reused ${turn.reusedTokens})`,
      `sampled ${turn.sampledTokens}`,
      ...(turn.meanLogprob === null ? [] : [`mean log-probability ${turn.meanLogprob.toFixed(3)}`]),
      turn.finishReason,
      ...turn.policyVersions,
      ...turn.issues,
      ...(turn.forkReason === null ? [] : [`new root: ${turn.forkReason}`]),
    ];
    lines.push("", `  assistant  [call ${turn.index}: ${facts.join(", ")}]`);
    lines.push(
      indent(turn.message === null ? "(nothing sampled)" : messageText(turn.message), limit),
    );
  }
  return lines;
}
