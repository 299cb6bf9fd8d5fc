/**
 * From a translated request to everything the engine needs: prompt ids, sampling, length, seed.
 *
 * Law: the harness's wishes are recorded; the session decides. The seed never depends on arrival order.
 */
import {
  type Conversation,
  type Engine,
  GimbalError,
  type SamplingParameters,
  type VolatileReplacement,
} from "@gimbal-rl/core";
import { applySampling, countCharacters, type ParsedRequest } from "@gimbal-rl/dialects";
import type { Renderer, TapePlan } from "@gimbal-rl/renderers";
import type { Session } from "./session.js";
import type { SessionLimit } from "./session-spec.js";
import { stabiliseConversation, type VolatileRule } from "./volatile-rules.js";

/** A call that may start. */
export interface PreparedCall {
  readonly request: ParsedRequest;
  /** After volatile parts were replaced and forbidden tools removed: what is rendered. */
  readonly conversation: Conversation;
  readonly replacements: readonly VolatileReplacement[];
  readonly plan: TapePlan;
  readonly sampling: SamplingParameters;
  readonly maxTokens: number;
  /** The limit that made `maxTokens` smaller than asked; hitting the end is then hitting this limit. */
  readonly clampedBy: SessionLimit | null;
  readonly stopIds: readonly number[];
  readonly seed: number;
  /** Stable over re-runs and unique in the session: tool-call ids derive from it. */
  readonly identity: string;
}

/** What preparation needs to know of the gateway. */
export interface PrepareContext {
  readonly engine: Engine;
  readonly renderer: Renderer;
  readonly volatileRules: readonly VolatileRule[];
  readonly defaultMaxTokens: number;
  readonly maxCharactersPerToken: number;
  readonly runSeed: number;
}

/**
 * Decides how a request is sampled.
 * @throws {GimbalError} `context-length-exceeded`, `request-field-refused`, `invalid-request`, `template-unsupported`.
 */
export function prepareCall(
  session: Session,
  request: ParsedRequest,
  context: PrepareContext,
): PreparedCall {
  const { engine, renderer } = context;
  if (typeof request.toolChoice === "object" || request.toolChoice === "required") {
    throw new GimbalError(
      "request-field-refused",
      'tool_choice forces a tool call, which sampled tokens cannot promise. Use "auto" or "none".',
    );
  }
  const offered =
    request.toolChoice === "none" ? { ...request.conversation, tools: [] } : request.conversation;
  const { conversation, replacements } = stabiliseConversation(offered, context.volatileRules);
  const contextLimit = Math.min(
    engine.info.contextLength,
    session.init.budgets.maxContextTokens ?? Number.POSITIVE_INFINITY,
  );
  const overflow = (tokens: string): never => {
    session.hitLimit("context-overflow");
    throw new GimbalError(
      "context-length-exceeded",
      `prompt is too long: ${tokens} tokens > ${contextLimit} maximum. Shorten or compact the conversation.`,
      { details: { contextLimit } },
    );
  };
  // Tokenising megabytes that cannot fit would stall every other session.
  const characters = countCharacters(conversation);
  if (characters > contextLimit * context.maxCharactersPerToken) {
    overflow(`at least ${Math.ceil(characters / context.maxCharactersPerToken)}`);
  }
  const stopIds = [...renderer.stopIds, ...request.stop.map((text) => stopIdOf(text, renderer))];
  const plan = session.init.tape.plan(conversation);
  const contextLeft = contextLimit - plan.promptIds.length;
  if (contextLeft <= 0) overflow(String(plan.promptIds.length));

  const wanted = Math.min(
    request.sampling.maxTokens ?? context.defaultMaxTokens,
    session.init.budgets.maxTokensPerCall ?? Number.POSITIVE_INFINITY,
  );
  const tokensLeft = session.tokensLeft();
  const maxTokens = Math.max(1, Math.min(wanted, tokensLeft, contextLeft));
  let clampedBy: SessionLimit | null = null;
  if (maxTokens < wanted)
    clampedBy = tokensLeft <= contextLeft ? "token-budget" : "context-overflow";

  const { digest, occurrence } = session.nextOccurrence(plan.promptIds);
  const sampling = samplingFor(session, request);
  const isSeedHonoured = !session.init.training && request.sampling.seed !== undefined;
  return {
    request,
    conversation,
    replacements,
    plan,
    sampling,
    maxTokens,
    clampedBy,
    stopIds,
    seed: isSeedHonoured
      ? (request.sampling.seed ?? 0) >>> 0
      : session.seedOf(context.runSeed, plan.promptIds, occurrence),
    identity: `${context.runSeed}/${session.seedOwner()}/${digest}/${occurrence}`,
  };
}

function samplingFor(session: Session, request: ParsedRequest): SamplingParameters {
  const { training, sampling } = session.init;
  if (training) return { temperature: sampling.temperature, topP: 1, topK: 0 };
  return applySampling(request.sampling, sampling);
}

/** A stop string works where it is one token of the vocabulary; anything else would cut sampled tokens apart. */
function stopIdOf(text: string, renderer: Renderer): number {
  const id = renderer.tokenizer.tokenToId(text);
  if (id !== undefined) return id;
  throw new GimbalError(
    "request-field-refused",
    `stop holds ${JSON.stringify(text)}, which is not one token of this model. Leave it out; turns end by themselves.`,
  );
}
