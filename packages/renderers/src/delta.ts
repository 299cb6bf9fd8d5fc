/**
 * Deltas: what a template writes after a sampled turn, learned from the template itself.
 *
 * Law: a delta is the text from the end of turn on when the template renders a short stand-in conversation followed by the
 * new messages. It is used only if, on probes of several shapes, that text does not depend on what came before, and the
 * end of turn is one added token, so that no tokenisation crosses from sampled ids into the delta.
 */
import type { AssistantMessage, Conversation, Message, ToolDefinition } from "@gimbal-rl/core";
import type { AddedToken } from "./added-tokens.js";
import type { PromptWriter } from "./prompt-writer.js";
import type { DeltaSupport } from "./renderer.js";

/** What was learned about a template's turns. */
export interface TurnKnowledge {
  /** The added token that closes an assistant turn; null when the template has none. */
  readonly endOfTurn: AddedToken | null;
  readonly delta: DeltaSupport;
}

const sentinel = "GimbalEndOfSampledTurn";

function assistantBefore(newMessages: readonly Message[]): AssistantMessage {
  const toolMessages: string[] = [];
  for (const message of newMessages) {
    if (message.role !== "tool") break;
    toolMessages.push(message.toolCallId);
  }
  if (toolMessages.length === 0) {
    return { role: "assistant", parts: [{ type: "text", text: sentinel }] };
  }
  return {
    role: "assistant",
    parts: toolMessages.map((toolCallId, index) => ({
      type: "tool-call" as const,
      toolCallId,
      name: "probe",
      argumentsText: index === toolMessages.length - 1 ? `{"probe": "${sentinel}"}` : "{}",
    })),
  };
}

function textMessage(role: "user" | "system", text: string): Message {
  return { role, parts: [{ type: "text", text }] };
}

/** The text from the end of turn on, for new messages after a sampled turn; null when it cannot be found. */
export function deltaText(
  writer: PromptWriter,
  endOfTurn: AddedToken,
  newMessages: readonly Message[],
  before: Conversation = { messages: [textMessage("user", "probe")], tools: [] },
): string | null {
  const turn = assistantBefore(newMessages);
  const { text } = writer.write(
    { messages: [...before.messages, turn, ...newMessages], tools: before.tools },
    true,
  );
  const at = text.indexOf(sentinel);
  if (at < 0) return null;
  const end = text.indexOf(endOfTurn.content, at);
  return end < 0 ? null : text.slice(end);
}

/** Probes a template. Rendering errors of a probe mean "not supported", never a failure to load. */
export function learnTurns(writer: PromptWriter): TurnKnowledge {
  const endOfTurn = findEndOfTurn(writer);
  if (endOfTurn === null) {
    const reason = "the template does not close an assistant turn with an added token";
    return { endOfTurn, delta: { supported: false, reason, keepsHistory: false } };
  }
  const unsupported = (reason: string): TurnKnowledge => ({
    endOfTurn,
    delta: { supported: false, reason, keepsHistory: false },
  });
  let keepsHistory = true;
  try {
    for (const { name, newMessages } of continuations) {
      const delta = deltaText(writer, endOfTurn, newMessages);
      if (delta === null) return unsupported(`no end of turn found before ${name}`);
      for (const before of histories) {
        if (deltaText(writer, endOfTurn, newMessages, before) !== delta) {
          return unsupported(`what the template writes for ${name} depends on earlier messages`);
        }
        keepsHistory &&= historyIsKept(writer, endOfTurn, before, newMessages, delta);
      }
    }
  } catch (error) {
    return unsupported(error instanceof Error ? error.message : String(error));
  }
  keepsHistory &&= reasoningIsKept(writer);
  return { endOfTurn, delta: { supported: true, reason: null, keepsHistory } };
}

function findEndOfTurn(writer: PromptWriter): AddedToken | null {
  const turn = assistantBefore([]);
  const { text } = writer.write(
    { messages: [textMessage("user", "probe"), turn, textMessage("user", "next")], tools: [] },
    true,
  );
  const at = text.indexOf(sentinel);
  if (at < 0) return null;
  const [first] = writer.tokenizer.addedTokens.split(text.slice(at + sentinel.length));
  return first?.kind === "token" ? first.token : null;
}

/** Whether prompt ids + turn ids + delta ids are the ids of the whole conversation rendered at once. */
function historyIsKept(
  writer: PromptWriter,
  endOfTurn: AddedToken,
  before: Conversation,
  newMessages: readonly Message[],
  delta: string,
): boolean {
  const prompt = writer.write(before, true).text;
  const turn = assistantBefore(newMessages);
  const whole = writer.write(
    { messages: [...before.messages, turn, ...newMessages], tools: before.tools },
    true,
  ).text;
  if (!whole.startsWith(prompt)) return false;
  const end = whole.indexOf(endOfTurn.content, whole.indexOf(sentinel));
  const pieces = [prompt, whole.slice(prompt.length, end), delta];
  const joined = pieces.flatMap((piece) => writer.encode(piece));
  const atOnce = writer.encode(whole);
  return joined.length === atOnce.length && joined.every((id, index) => id === atOnce[index]);
}

/** Whether the reasoning of an earlier turn is still there when the user speaks again. */
function reasoningIsKept(writer: PromptWriter): boolean {
  const turn: AssistantMessage = {
    role: "assistant",
    parts: [
      { type: "reasoning", text: sentinel },
      { type: "text", text: "answer" },
    ],
  };
  const messages = [textMessage("user", "probe"), turn, textMessage("user", "next")];
  return writer.write({ messages, tools: [] }, true).text.includes(sentinel);
}

function toolResult(toolCallId: string, text: string): Message {
  return { role: "tool", toolCallId, parts: [{ type: "text", text }] };
}

const continuations: readonly {
  readonly name: string;
  readonly newMessages: readonly Message[];
}[] = [
  { name: "a user message", newMessages: [textMessage("user", " go on\n")] },
  { name: "a tool result", newMessages: [toolResult("call_1", "\nok")] },
  {
    name: "several tool results",
    newMessages: [toolResult("call_1", "one"), toolResult("call_2", "two\n\n")],
  },
  {
    name: "a tool result and a user message",
    newMessages: [toolResult("call_1", "{}"), textMessage("user", "and now?")],
  },
];

const probeTool: ToolDefinition = {
  name: "probe",
  description: "Probes.",
  schemaText: '{"type": "object", "properties": {"probe": {"type": "string"}}}',
  definitionText:
    '{"type": "function", "function": {"name": "probe", "description": "Probes.", "parameters": {"type": "object", "properties": {"probe": {"type": "string"}}}}}',
};

const histories: readonly Conversation[] = [
  { messages: [textMessage("user", "another question")], tools: [] },
  {
    messages: [textMessage("system", "Be brief."), textMessage("user", "hello")],
    tools: [probeTool],
  },
  {
    messages: [
      textMessage("system", "Be brief."),
      textMessage("user", "hello"),
      {
        role: "assistant",
        parts: [
          { type: "text", text: "looking" },
          {
            type: "tool-call",
            toolCallId: "call_0",
            name: "probe",
            argumentsText: '{"probe": "a"}',
          },
        ],
      },
      toolResult("call_0", "found"),
    ],
    tools: [probeTool],
  },
];

/** A conversation with every kind of message, for checking marks. */
export const markProbe: Conversation = {
  messages: [
    ...(histories[2]?.messages ?? []),
    { role: "assistant", parts: [{ type: "text", text: "done" }] },
    textMessage("user", "next"),
  ],
  tools: [probeTool],
};
