/** From what a request asks to the distribution that an engine samples. */
import type { AskedSampling, SamplingParameters } from "@gimbal-rl/core";

/**
 * What was asked, else the defaults. A `top_p` of 0 is allowed by the API: the smallest set of candidates, which is the
 * most likely one alone, so it becomes top-k 1 with top-p off (engines take only masses above 0).
 * @example
 * applySampling({ topP: 0 }, { temperature: 1, topP: 1, topK: 0 }); // { temperature: 1, topP: 1, topK: 1 }
 */
export function applySampling(
  asked: AskedSampling,
  defaults: SamplingParameters,
): SamplingParameters {
  const temperature = asked.temperature ?? defaults.temperature;
  const topP = asked.topP ?? defaults.topP;
  if (topP === 0) return { temperature, topP: 1, topK: 1 };
  return { temperature, topP, topK: asked.topK ?? defaults.topK };
}
