/**
 * Trains the byte-level BPE of `gimbal-tiny`.
 *
 * Law: names and values that the policy must copy are one token wherever they stand (no leading-space variants), and
 * text that never varies (the harness's own prompt, JSON around arguments) collapses into few tokens. Two stages share
 * one merge list: (1) inside words of letters; (2) across word borders, but never touching an atomic word or a digit.
 * Any other text still encodes, byte by byte at worst.
 */

/** What the tokenizer is trained on. */
export interface TokenizerCorpus {
  /** Texts as they stand between special tokens, with how often each counts. */
  readonly texts: readonly { readonly text: string; readonly count: number }[];
  /** Strings that become exactly one token and never merge with neighbours. */
  readonly atomic: readonly string[];
  readonly specialTokens: readonly string[];
  /** Merges in stage 1 beyond those that the atomic words need. */
  readonly wordMerges: number;
  /** Upper bound of the whole vocabulary, special tokens included. */
  readonly vocabularySize: number;
  /** Stage 2 stops when the best pair occurs less often than this. */
  readonly minimumCount: number;
}

/** The contents of a Hugging Face `tokenizer.json` and facts about it. */
export interface TrainedTokenizer {
  readonly json: Record<string, unknown>;
  readonly vocabularySize: number;
}

/** GPT-2's reversible map from bytes to printable characters. */
function byteCharacters(): string[] {
  const direct = new Set<number>();
  for (let b = 33; b <= 126; b += 1) direct.add(b);
  for (let b = 161; b <= 172; b += 1) direct.add(b);
  for (let b = 174; b <= 255; b += 1) direct.add(b);
  let next = 256;
  return Array.from({ length: 256 }, (_, b) => {
    if (direct.has(b)) return String.fromCodePoint(b);
    const character = String.fromCodePoint(next);
    next += 1;
    return character;
  });
}

interface WeightedRun {
  tokens: string[];
  readonly count: number;
}

const separator = "\u0001";

/** Counts adjacent pairs; ties later go to the pair seen first, so the result is deterministic. */
function bestPair(
  runs: readonly WeightedRun[],
  allowed: (left: string, right: string) => boolean,
): { left: string; right: string; count: number } | null {
  const counts = new Map<string, number>();
  for (const run of runs) {
    for (let i = 0; i + 1 < run.tokens.length; i += 1) {
      const key = `${run.tokens[i]}${separator}${run.tokens[i + 1]}`;
      counts.set(key, (counts.get(key) ?? 0) + run.count);
    }
  }
  let best: { left: string; right: string; count: number } | null = null;
  for (const [key, count] of counts) {
    if (best !== null && count <= best.count) continue;
    const [left = "", right = ""] = key.split(separator);
    if (allowed(left, right)) best = { left, right, count };
  }
  return best;
}

function isWord(text: string): boolean {
  return /^[a-z]+$/.test(text);
}

function applyMerge(tokens: readonly string[], left: string, right: string): string[] {
  const merged: string[] = [];
  for (let i = 0; i < tokens.length; i += 1) {
    const token = tokens[i] ?? "";
    if (token === left && tokens[i + 1] === right) {
      merged.push(left + right);
      i += 1;
    } else merged.push(token);
  }
  return merged;
}

/** Trains the merges and writes the Hugging Face file content. Deterministic. */
export function trainTokenizer(corpus: TokenizerCorpus): TrainedTokenizer {
  const characters = byteCharacters();
  const encoder = new TextEncoder();
  const toUnits = (text: string): string[] =>
    Array.from(encoder.encode(text), (byte) => characters[byte] ?? "");
  const merges: [string, string][] = [];
  const vocabulary = new Set<string>(characters);
  const addMerge = (left: string, right: string): void => {
    merges.push([left, right]);
    vocabulary.add(left + right);
  };

  const encodeSoFar = (text: string): string[] => {
    let tokens = toUnits(text);
    for (const [left, right] of merges) {
      if (tokens.length < 2) break;
      tokens = applyMerge(tokens, left, right);
    }
    return tokens;
  };

  // Stage 1a: each atomic string becomes one token. Words come before strings such as `.md`, whose merges (`.` + `m`)
  // would otherwise eat the first letter of a word after a full stop.
  const atomic = [...new Set(corpus.atomic)].sort();
  for (const group of [atomic.filter(isWord), atomic.filter((text) => !isWord(text))]) {
    const atomicRuns = group.map((text) => ({ tokens: encodeSoFar(text), count: 1 }));
    for (;;) {
      const pair = bestPair(atomicRuns, () => true);
      if (pair === null) break;
      addMerge(pair.left, pair.right);
      for (const run of atomicRuns) run.tokens = applyMerge(run.tokens, pair.left, pair.right);
    }
  }
  const atomicTokens = new Set(corpus.atomic.map((word) => toUnits(word).join("")));

  // Stage 1b: frequent words of letters.
  const words = new Map<string, number>();
  for (const { text, count } of corpus.texts) {
    for (const [word] of text.matchAll(/[A-Za-z]{2,}/g)) {
      words.set(word, (words.get(word) ?? 0) + count);
    }
  }
  const wordRuns: WeightedRun[] = [...words].map(([word, count]) => ({
    tokens: encodeSoFar(word),
    count,
  }));
  for (let i = 0; i < corpus.wordMerges; i += 1) {
    const pair = bestPair(
      wordRuns,
      (left, right) => !atomicTokens.has(left) && !atomicTokens.has(right),
    );
    if (pair === null) break;
    addMerge(pair.left, pair.right);
    for (const run of wordRuns) run.tokens = applyMerge(run.tokens, pair.left, pair.right);
  }

  // Stage 2: runs between atomic words and digits may merge across word borders.
  const runs = new Map<string, number>();
  const cache = new Map<string, string[]>();
  for (const { text, count } of corpus.texts) {
    let tokens = cache.get(text);
    if (tokens === undefined) {
      tokens = encodeSoFar(text);
      cache.set(text, tokens);
    }
    let run: string[] = [];
    const flush = (): void => {
      if (run.length > 1) {
        const key = run.join(separator);
        runs.set(key, (runs.get(key) ?? 0) + count);
      }
      run = [];
    };
    for (const token of tokens) {
      if (atomicTokens.has(token) || /^[0-9]$/.test(token)) flush();
      else run.push(token);
    }
    flush();
  }
  const phraseRuns: WeightedRun[] = [...runs].map(([key, count]) => ({
    tokens: key.split(separator),
    count,
  }));
  while (vocabulary.size + corpus.specialTokens.length < corpus.vocabularySize) {
    const pair = bestPair(phraseRuns, () => true);
    if (pair === null || pair.count < corpus.minimumCount) break;
    addMerge(pair.left, pair.right);
    for (const run of phraseRuns) run.tokens = applyMerge(run.tokens, pair.left, pair.right);
  }

  const ordered = [...characters, ...merges.map(([left, right]) => left + right)];
  const ids: Record<string, number> = {};
  for (const token of ordered) ids[token] ??= Object.keys(ids).length;
  const base = Object.keys(ids).length;
  const json = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: corpus.specialTokens.map((content, i) => ({
      id: base + i,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: {
      type: "ByteLevel",
      add_prefix_space: false,
      trim_offsets: false,
      use_regex: false,
    },
    post_processor: {
      type: "ByteLevel",
      add_prefix_space: true,
      trim_offsets: false,
      use_regex: false,
    },
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: "",
      end_of_word_suffix: "",
      fuse_unk: false,
      byte_fallback: false,
      vocab: ids,
      merges: merges.map(([left, right]) => `${left} ${right}`),
    },
  };
  return { json, vocabularySize: base + corpus.specialTokens.length };
}
