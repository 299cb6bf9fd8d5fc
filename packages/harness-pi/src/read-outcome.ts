/**
 * Reads Pi's JSON event stream.
 *
 * Law: completed means that the last agent run ended by itself with an answer. The exit code is 0 even after a final
 * failure, so it is used only when there is no stream at all.
 */
import type { HarnessOutcome } from "@gimbal-rl/core";

interface PiMessage {
  readonly role?: unknown;
  readonly content?: unknown;
  readonly stopReason?: unknown;
  readonly errorMessage?: unknown;
}

interface PiEvent {
  readonly type?: unknown;
  readonly id?: unknown;
  readonly message?: PiMessage;
  readonly messages?: readonly PiMessage[];
  readonly willRetry?: unknown;
  readonly isError?: unknown;
}

/** Turns what Pi printed into an outcome. Never throws. */
export function readPiOutcome(exit: {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}): HarnessOutcome {
  let sessionId: string | null = null;
  let ended = false;
  let last: PiMessage | null = null;
  let finalText: string | null = null;
  let toolCalls = 0;
  let toolErrors = 0;
  for (const line of exit.stdout.split("\n")) {
    const event = parseEvent(line);
    if (event === null) continue;
    switch (event.type) {
      case "session":
        sessionId = typeof event.id === "string" ? event.id : null;
        break;
      case "agent_start":
        ended = false;
        break;
      case "message_end":
        if (event.message?.role === "assistant") {
          last = event.message;
          finalText = textOf(last) ?? finalText;
        }
        break;
      case "tool_execution_end":
        toolCalls += 1;
        if (event.isError === true) toolErrors += 1;
        break;
      case "agent_end":
        ended = event.willRetry !== true;
        break;
      default:
        break;
    }
  }
  const errorText = ended ? errorOf(last) : unfinishedText(exit, last);
  return {
    status: errorText === null ? "completed" : "failed",
    finalText,
    errorText,
    toolCalls,
    toolErrors,
    nativeSessionId: sessionId,
  };
}

function parseEvent(line: string): PiEvent | null {
  if (!line.startsWith("{")) return null;
  try {
    return JSON.parse(line) as PiEvent;
  } catch {
    return null;
  }
}

/** Null when the last assistant message is an answer. */
function errorOf(message: PiMessage | null): string | null {
  if (message === null) return "Pi ended without an answer.";
  if (message.stopReason !== "error" && message.stopReason !== "aborted") return null;
  return typeof message.errorMessage === "string" && message.errorMessage !== ""
    ? message.errorMessage
    : `Pi ended with stop reason ${message.stopReason}.`;
}

function unfinishedText(
  exit: { readonly exitCode: number | null; readonly stderr: string },
  last: PiMessage | null,
): string {
  const said = last === null ? null : errorOf(last);
  const stderr = exit.stderr.trim().split("\n").slice(-3).join(" ").slice(-500);
  return said ?? (stderr || `Pi stopped without an agent_end event (exit code ${exit.exitCode}).`);
}

function textOf(message: PiMessage): string | null {
  if (!Array.isArray(message.content)) return null;
  const texts = message.content.flatMap((part: { type?: unknown; text?: unknown } | null) =>
    part?.type === "text" && typeof part.text === "string" ? [part.text] : [],
  );
  return texts.length === 0 ? null : texts.join("");
}
