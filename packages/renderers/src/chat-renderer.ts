/**
 * A renderer from the texts of a Hugging Face model folder: tokenizer, chat template, turn format and deltas.
 */
import { type Conversation, GimbalError } from "@gimbal-rl/core";
import { deltaText, learnTurns, markProbe, type TurnKnowledge } from "./delta.js";
import { createTurnParser } from "./output-parser.js";
import { PromptWriter } from "./prompt-writer.js";
import type { OutputParser, RenderedPrompt, Renderer } from "./renderer.js";
import { sha256Hex } from "./sha256.js";
import { compileTemplate } from "./template.js";
import { type LoadedTokenizer, loadFullTokenizer } from "./tokenizer.js";
import type { TurnFormat } from "./turn-text-parser.js";

/** The texts that make a renderer. */
export interface RendererSource {
  /** Text of `tokenizer.json`. */
  readonly tokenizerJson: string;
  /** Text of `tokenizer_config.json`; names the end-of-sequence token and may hold the template. */
  readonly tokenizerConfigJson?: string;
  /** Text of `chat_template.jinja`; wins over the one in the config. */
  readonly chatTemplate?: string;
  /** Text of `generation_config.json`; may name more end-of-sequence ids. */
  readonly generationConfigJson?: string;
  /** Variables for the template, for example `{ enable_thinking: false }`. */
  readonly templateOptions?: Readonly<Record<string, unknown>>;
  /** Name in logs and run.json. Default `chat-template`. */
  readonly id?: string;
}

function modelInvalid(message: string): GimbalError {
  return new GimbalError("model-invalid", message);
}

function parseObject(text: string, name: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Reported below, with the file's name.
  }
  throw modelInvalid(`${name} holds no JSON object; copy the model folder again.`);
}

/** `chat_template` is a string, or a list of named templates of which `default` is meant. */
function templateOf(config: Record<string, unknown>): string | null {
  const template = config.chat_template;
  if (typeof template === "string") return template;
  if (!Array.isArray(template)) return null;
  const found = template.find((entry) => entry?.name === "default") ?? template[0];
  return typeof found?.template === "string" ? found.template : null;
}

function stopIdsOf(
  tokenizer: LoadedTokenizer,
  knowledge: TurnKnowledge,
  generationConfig: Record<string, unknown>,
): number[] {
  const ids = new Set<number>();
  if (knowledge.endOfTurn !== null) ids.add(knowledge.endOfTurn.id);
  const eos = tokenizer.namedTokens.eos_token;
  const eosId = eos === undefined ? undefined : tokenizer.tokenToId(eos);
  if (eosId !== undefined) ids.add(eosId);
  const extra = generationConfig.eos_token_id;
  for (const id of Array.isArray(extra) ? extra : [extra]) {
    if (typeof id === "number" && id >= 0 && id < tokenizer.vocabularySize) ids.add(id);
  }
  return [...ids];
}

/**
 * Makes a renderer. Pure: takes texts, reads no files. Loading probes the template with small conversations.
 * @throws {GimbalError} `model-invalid` for a broken tokenizer or a missing template or end-of-sequence token;
 * `template-unsupported` naming what the template uses that is missing here.
 * @example
 * const renderer = loadRenderer({ tokenizerJson, tokenizerConfigJson });
 * renderer.render({ messages: [{ role: "user", parts: [{ type: "text", text: "Hi" }] }], tools: [] }).ids;
 */
export function loadRenderer(source: RendererSource): Renderer {
  const configText = source.tokenizerConfigJson ?? "{}";
  const config = parseObject(configText, "tokenizer_config.json");
  const generationConfig =
    source.generationConfigJson === undefined
      ? {}
      : parseObject(source.generationConfigJson, "generation_config.json");
  const templateText = source.chatTemplate ?? templateOf(config);
  if (templateText === null) {
    throw modelInvalid(
      "No chat template found; expected chat_template.jinja or a chat_template in tokenizer_config.json. Use an instruction-tuned model folder.",
    );
  }
  const tokenizer = loadFullTokenizer(source.tokenizerJson, configText);
  const writer = new PromptWriter(
    tokenizer,
    compileTemplate(templateText),
    source.templateOptions ?? {},
  );
  const knowledge = learn(writer);
  const stopIds = stopIdsOf(tokenizer, knowledge, generationConfig);
  if (stopIds.length === 0) {
    throw modelInvalid(
      "No end-of-turn token found; expected eos_token in tokenizer_config.json or a template that closes turns with an added token.",
    );
  }
  return new ChatRenderer({
    id: source.id ?? "chat-template",
    writer,
    stopIds,
    knowledge,
    format: turnFormat(writer, templateText),
    // Hashing megabytes takes longer than all the rest, and most callers never look.
    fingerprint: () => ({
      template: sha256Hex(templateText),
      tokenizer: sha256Hex(source.tokenizerJson),
    }),
  });
}

/** Template features are probed, so that what is missing is said at load, not in the middle of a run. */
function learn(writer: PromptWriter): TurnKnowledge {
  try {
    writer.checkMarks(markProbe);
  } catch (error) {
    // A template may refuse a probe (no tools, no system message); only what is missing *here* fails the load.
    if (!GimbalError.is(error) || error.code !== "invalid-request") throw error;
  }
  return learnTurns(writer);
}

function turnFormat(writer: PromptWriter, templateText: string): TurnFormat {
  const { text } = writer.write(
    { messages: [{ role: "user", parts: [{ type: "text", text: "probe" }] }], tools: [] },
    true,
  );
  const opened = text.lastIndexOf("<think>");
  return {
    startsInReasoning: opened >= 0 && opened > text.lastIndexOf("</think>"),
    reasoning: templateText.includes("<think>") || templateText.includes("</think>"),
    toolCalls: templateText.includes("<tool_call>"),
  };
}

interface ChatRendererParts {
  readonly id: string;
  readonly writer: PromptWriter;
  readonly stopIds: readonly number[];
  readonly knowledge: TurnKnowledge;
  readonly format: TurnFormat;
  readonly fingerprint: () => Renderer["fingerprint"];
}

class ChatRenderer implements Renderer {
  readonly id: string;
  readonly tokenizer: LoadedTokenizer;
  readonly stopIds: readonly number[];
  readonly deltaSupport: Renderer["deltaSupport"];
  private readonly parts: ChatRendererParts;
  private fingerprintCache: Renderer["fingerprint"] | null = null;

  constructor(parts: ChatRendererParts) {
    this.id = parts.id;
    this.tokenizer = parts.writer.tokenizer;
    this.stopIds = parts.stopIds;
    this.deltaSupport = parts.knowledge.delta;
    this.parts = parts;
  }

  get fingerprint(): Renderer["fingerprint"] {
    this.fingerprintCache ??= this.parts.fingerprint();
    return this.fingerprintCache;
  }

  render(conversation: Conversation): RenderedPrompt {
    return this.parts.writer.render(conversation);
  }

  renderDelta(tail: readonly number[], newMessages: Conversation["messages"]): readonly number[] {
    const { endOfTurn, delta } = this.parts.knowledge;
    const text =
      endOfTurn !== null && delta.supported
        ? deltaText(this.parts.writer, endOfTurn, newMessages)
        : null;
    if (endOfTurn === null || text === null) {
      throw new GimbalError(
        "template-unsupported",
        `This chat template cannot be continued token by token (${delta.reason ?? "no end of turn found"}); render the whole conversation instead.`,
      );
    }
    const ids = this.parts.writer.encode(text);
    return tail.at(-1) === endOfTurn.id ? ids.slice(1) : ids;
  }

  createOutputParser(options: {
    readonly conversation: Conversation;
    readonly mintToolCallId: () => string;
  }): OutputParser {
    const { format, stopIds } = this.parts;
    return createTurnParser({
      tokenizer: this.tokenizer,
      stopIds: new Set(stopIds),
      format: { ...format, toolCalls: format.toolCalls && options.conversation.tools.length > 0 },
      mintToolCallId: options.mintToolCallId,
    });
  }
}
