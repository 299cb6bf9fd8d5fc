/**
 * The tokenizer's corpus: the prompt that Pi really sends, with several install and workspace paths, and desk episodes
 * played against the tool simulator (the tokenizer only learns frequencies from them; no id of theirs is trained on).
 */
import { createDeskTasks, deskWords, playDeskEpisode } from "@gimbal-rl/desk";
import type { CapturedPrompt } from "./capture-prompt.js";
import type { TokenizerCorpus } from "./train-tokenizer.js";

/** Special tokens of the model, in order of id. */
export const specialTokens: readonly string[] = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<think>",
  "</think>",
];

/** Names of folders, kinds of files and fixed values that the policy copies. */
const atomicMarks = [
  "src",
  "conf",
  "logs",
  "notes",
  "none",
  ".js",
  ".json",
  ".ini",
  ".txt",
  ".log",
  ".md",
];

/** Install and workspace paths; the first pair is what level `namespace` shows. */
const places: readonly (readonly [install: string, workspace: string])[] = [
  ["/opt/pi", "/workspace"],
  ["/home/user/.cache/gimbal/harness/pi-1.6.0", "/tmp/gimbal-1a2b3c/workspace"],
  ["/root/.cache/gimbal/harness/pi-1.6.0", "/var/tmp/gimbal-9z8y7x/workspace"],
];

function splitAtSpecials(text: string): string[] {
  const escaped = specialTokens.map((token) => token.replace(/[|/]/g, "\\$&"));
  return text.split(new RegExp(`(?:${escaped.join("|")})`)).filter((part) => part !== "");
}

/** Builds the corpus. */
export function buildCorpus(prompt: CapturedPrompt, episodes: number): TokenizerCorpus {
  const texts: { text: string; count: number }[] = [];
  const add = (text: string, count: number): void => {
    for (const part of splitAtSpecials(text)) texts.push({ text: part, count });
  };
  const [[install = "", workspace = ""] = []] = places;
  places.forEach(([otherInstall, otherWorkspace], i) => {
    const system = prompt.system
      .replaceAll(install, otherInstall)
      .replaceAll(workspace, otherWorkspace);
    // The first place is the common one; the others only keep merges from gluing paths to the text around them.
    const count = i === 0 ? 200 : 20;
    add(`system\n`, count);
    add(system, count);
    const tools = prompt.tools.map((tool) => `\n${tool}`).join("");
    add(`\n\n# Tools\n\n<tools>${tools}\n</tools>\n\nCall a tool with `, count);
    add(`\n{"name": NAME, "arguments": OBJECT}\n`, count);
  });
  for (const task of createDeskTasks({ split: "demonstration", seed: 1, count: episodes })) {
    for (const habit of ["careful", "hasty"] as const) {
      const episode = playDeskEpisode(task, habit);
      add("user\n", 1);
      add(episode.instruction, 1);
      for (const turn of episode.turns) {
        add("assistant\n", 1);
        for (const { argumentsText, name } of turn.toolCalls) {
          add(`\n{"name": "${name}", "arguments": ${argumentsText}}\n`, 1);
        }
        for (const result of turn.results) {
          add("tool\n", 1);
          add(result, 1);
        }
      }
      add("Done.", 1);
    }
  }
  return {
    texts,
    atomic: [...deskWords, ...atomicMarks],
    specialTokens,
    wordMerges: 500,
    vocabularySize: 3072,
    minimumCount: 12,
  };
}
