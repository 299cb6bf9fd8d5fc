/**
 * The scripted expert as an Engine, so that demonstrations are captured on the ordinary road: it reads the prompt ids
 * it is given, decides from what the tools answered, and answers with ids.
 */
import {
  asId,
  type Engine,
  type EngineInfo,
  type GenerateEvent,
  type GenerateRequest,
  GimbalError,
  jsonMember,
  type PolicyVersion,
  parseJsonText,
  type SessionId,
  type Task,
} from "@gimbal-rl/core";
import {
  createDeskExpert,
  type DeskHabit,
  type ExpertCall,
  type ExpertObservation,
  type ExpertTurn,
} from "@gimbal-rl/desk";
import type { Tokenizer } from "@gimbal-rl/renderers";

const callPattern = /<tool_call>\n([\s\S]*?)\n<\/tool_call>/g;

function readCalls(text: string): ExpertCall[] {
  return [...text.matchAll(callPattern)].map(([, json = ""]) => {
    const node = parseJsonText(json);
    const name = jsonMember(node, "name");
    const argumentsNode = jsonMember(node, "arguments");
    if (name?.kind !== "string" || argumentsNode === undefined) {
      throw new GimbalError("invalid-request", `The transcript holds a call that is none: ${json}`);
    }
    return { name: name.value, argumentsText: json.slice(argumentsNode.start, argumentsNode.end) };
  });
}

/** Finished calls with their answers, from the text of a prompt in the tiny policy's chat format. */
function readObservations(prompt: string): ExpertObservation[] {
  const open: ExpertCall[] = [];
  const observations: ExpertObservation[] = [];
  for (const block of prompt.split("<|im_start|>").slice(1)) {
    const body = block.slice(block.indexOf("\n") + 1).replace(/<\|im_end\|>\n?$/, "");
    if (block.startsWith("assistant\n")) open.push(...readCalls(body));
    if (block.startsWith("tool\n")) {
      const call = open.shift();
      if (call !== undefined) observations.push({ ...call, text: body });
    }
  }
  return observations;
}

/** An expert turn as the policy writes it, without the end of turn. */
export function writeTurn(turn: ExpertTurn): string {
  const calls = turn.toolCalls.map(
    ({ argumentsText, name }) =>
      `<tool_call>\n{"name": "${name}", "arguments": ${argumentsText}}\n</tool_call>`,
  );
  return (turn.text ?? "") + calls.join("");
}

/** What the expert is to do, and how. */
export interface ExpertTask {
  readonly task: Task;
  readonly habit: DeskHabit;
}

/** An engine that plays the expert. `taskOf` finds the task of a session. */
export function createExpertEngine(options: {
  readonly tokenizer: Tokenizer;
  readonly endOfTurnId: number;
  readonly contextLength: number;
  readonly taskOf: (sessionId: SessionId) => ExpertTask | undefined;
}): Engine {
  const { contextLength, endOfTurnId, taskOf, tokenizer } = options;
  const policyVersion = asId<PolicyVersion>("expert");
  const info: EngineInfo = {
    id: "expert",
    model: "gimbal-tiny",
    captureMode: "tokens",
    contextLength,
    vocabularySize: tokenizer.vocabularySize,
    logprobsAfterTemperature: true,
  };
  return {
    info,
    policyVersion: () => policyVersion,
    async *generate(request: GenerateRequest): AsyncIterable<GenerateEvent> {
      const own = request.sessionId === undefined ? undefined : taskOf(request.sessionId);
      if (own === undefined) {
        throw new GimbalError("invalid-request", "The expert was asked without a known session.");
      }
      const observations = readObservations(tokenizer.decode(request.promptIds));
      const text = writeTurn(createDeskExpert(own.task, own.habit).next(observations));
      const ids = [...tokenizer.encode(text, { allowSpecial: true }), endOfTurnId];
      // The expert is certain: probability 1, log-probability 0.
      yield { type: "tokens-delta", ids, logprobs: ids.map(() => 0), policyVersion };
      yield { type: "generate-end", reason: "stop", cachedTokens: 0 };
    },
    [Symbol.asyncDispose]: async () => {},
  };
}
