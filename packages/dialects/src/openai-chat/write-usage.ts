/** Token counts in the OpenAI shape, the same for chat and completions. */
import type { Usage } from "@gimbal-rl/core";

/** The `usage` of an answer. */
export function writeOpenAiUsage(usage: Usage): Record<string, unknown> {
  return {
    prompt_tokens: usage.promptTokens,
    completion_tokens: usage.completionTokens,
    total_tokens: usage.promptTokens + usage.completionTokens,
    prompt_tokens_details: { cached_tokens: usage.cachedTokens },
  };
}
