/**
 * Stage 1: tokenizer.json and its configuration, from the prompt that the real Pi sends.
 */
import { writeFile } from "node:fs/promises";
import { capturePrompt } from "./capture-prompt.js";
import { buildCorpus, specialTokens } from "./corpus.js";
import { modelDir } from "./paths.js";
import { createPi } from "./pi.js";
import { trainTokenizer } from "./train-tokenizer.js";

const corpusEpisodes = 400;

/** Captures Pi's prompt, trains the tokenizer and writes it into the model folder. */
export async function buildTokenizer(): Promise<{ readonly vocabularySize: number }> {
  const { harness, sandbox } = await createPi("namespace");
  const prompt = await capturePrompt(harness, sandbox);
  const { json, vocabularySize } = trainTokenizer(buildCorpus(prompt, corpusEpisodes));
  const config = {
    add_prefix_space: false,
    bos_token: null,
    eos_token: "<|im_end|>",
    pad_token: "<|endoftext|>",
    unk_token: null,
    additional_special_tokens: specialTokens,
    clean_up_tokenization_spaces: false,
    model_max_length: 16_384,
    tokenizer_class: "Qwen2Tokenizer",
  };
  await writeFile(`${modelDir}/tokenizer.json`, `${JSON.stringify(json)}\n`);
  await writeFile(`${modelDir}/tokenizer_config.json`, `${JSON.stringify(config, null, 2)}\n`);
  return { vocabularySize };
}
