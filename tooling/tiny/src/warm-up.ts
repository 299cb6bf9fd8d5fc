/**
 * Warm-up on synthetic copy text: the model learns to copy from its context before it sees a demonstration.
 *
 * Two kinds of text, over the words, digits and common marks of the vocabulary: a phrase that is repeated after a gap,
 * and a table of keys and values that is then asked for in any order. Only the copied tokens are trained.
 */
import {
  type AttemptId,
  asId,
  type CallId,
  createRandom,
  hashToSeed,
  type Random,
  type Segment,
  type Trajectory,
} from "@gimbal-rl/core";

/** Ids that warm-up text is made of. */
export interface WarmUpVocabulary {
  readonly words: readonly number[];
  readonly digits: readonly number[];
  /** Tokens between names in real transcripts, the most frequent first. The first few get fixed parts to play: text
   * whose structure is always the same makes copying emerge several times sooner. */
  readonly marks: readonly number[];
}

const pick = (random: Random, from: readonly number[]): number =>
  from[random.integer(from.length)] ?? 0;

function drawValue(random: Random, { digits, words }: WarmUpVocabulary): number[] {
  if (random.next() < 0.65) return [pick(random, words)];
  return Array.from({ length: 1 + random.integer(3) }, () => pick(random, digits));
}

/** A run of text: given (kept in the context) or copied (trained). */
type Run = readonly [kind: "given" | "sampled", ids: readonly number[]];

function repeatedPhrase(random: Random, vocabulary: WarmUpVocabulary): Run[] {
  const { marks } = vocabulary;
  const opener = pick(random, marks.slice(0, 3));
  const phrase = Array.from({ length: 2 + random.integer(5) }, () =>
    random.next() < 0.85 ? drawValue(random, vocabulary) : [pick(random, marks)],
  ).flat();
  const gap = Array.from({ length: 1 + random.integer(10) }, () =>
    pick(random, random.next() < 0.5 ? marks : vocabulary.words),
  );
  return [
    ["given", [opener, ...phrase, ...gap, opener]],
    ["sampled", phrase],
  ];
}

function table(random: Random, vocabulary: WarmUpVocabulary): Run[] {
  const [equals, end, ask] = vocabulary.marks.slice(3, 6);
  const keys = new Set<number>();
  const rows = 2 + random.integer(6);
  while (keys.size < rows) keys.add(pick(random, vocabulary.words));
  const entries = [...keys].map((key) => ({ key, value: drawValue(random, vocabulary) }));
  const runs: Run[] = [
    ["given", entries.flatMap(({ key, value }) => [key, equals ?? 0, ...value, end ?? 0])],
  ];
  for (let i = 1 + random.integer(rows); i > 0; i -= 1) {
    const { key, value } = entries[random.integer(entries.length)] ?? { key: 0, value: [] };
    runs.push(["given", [ask ?? 0, key, equals ?? 0]], ["sampled", [...value, end ?? 0]]);
  }
  return runs;
}

/** Draws one training text of about `length` tokens. */
function drawText(random: Random, vocabulary: WarmUpVocabulary, length: number): Run[] {
  const runs: Run[] = [];
  for (let tokens = 0; tokens < length; ) {
    const next =
      random.next() < 0.5 ? repeatedPhrase(random, vocabulary) : table(random, vocabulary);
    runs.push(...next);
    tokens += next.reduce((sum, [, ids]) => sum + ids.length, 0);
  }
  return runs;
}

/** Warm-up texts as trajectories. Same seed, same texts. */
export function createWarmUpTexts(
  vocabulary: WarmUpVocabulary,
  options: { readonly count: number; readonly length: number; readonly seed: number },
): Trajectory[] {
  const random = createRandom(hashToSeed("warm-up", options.seed));
  return Array.from({ length: options.count }, (_, index): Trajectory => {
    const runs = drawText(random, vocabulary, options.length);
    const callId = asId<CallId>(`warm-up-${index}`);
    const segments = runs.map(
      ([kind, ids]): Segment => ({
        kind,
        ids,
        logprobs: kind === "sampled" ? ids.map(() => 0) : [],
        callId,
        trained: kind === "sampled",
        policyRuns: [],
      }),
    );
    const trained = runs.reduce(
      (sum, [kind, ids]) => sum + (kind === "sampled" ? ids.length : 0),
      0,
    );
    return {
      attemptId: asId<AttemptId>(callId),
      branches: [{ segments, callIds: [callId] }],
      fidelity: {
        sampledTokens: trained,
        trainedTokens: trained,
        coverage: 1,
        leftOut: [],
        calls: 1,
        branches: 1,
        links: {},
        malformedCalls: 0,
        fatal: [],
      },
    };
  });
}
