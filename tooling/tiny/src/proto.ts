import fs from "node:fs";
import { createDeskTasks, deskWords, playDeskEpisode } from "@gimbal-rl/desk";
import { trainTokenizer } from "./train-tokenizer.ts";

const req = JSON.parse(fs.readFileSync("/tmp/picap/req7.json", "utf8"));
const tools = req.tools.map((t: unknown) =>
  JSON.stringify(t).replace(/":/g, '": ').replace(/,"/g, ', "'),
);
const sys = (docs: string, cwd: string): string =>
  `<|im_start|>system\n${req.messages[0].content.replaceAll("/tmp/pi/node_modules/@earendil-works/pi-coding-agent", docs).replaceAll("/tmp/picap/ws", cwd)}\n\n# Tools\n\n<tools>\n${tools.join("\n")}\n</tools>\n\nCall a tool with <tool_call>\n{"name": NAME, "arguments": OBJECT}\n</tool_call><|im_end|>\n`;
const specials = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<think>",
  "</think>",
];
const split = (s: string): string[] =>
  s
    .split(/(<\|endoftext\|>|<\|im_start\|>|<\|im_end\|>|<\/?tool_call>|<\/?think>)/)
    .filter((x) => x !== "");
type Seg = [string, number];
const episodes = (splitName: any, seed: number, count: number, families?: string[]) =>
  createDeskTasks({ split: splitName, seed, count, ...(families ? { families } : {}) }).map(
    (task) => {
      const e: any = playDeskEpisode(task);
      const segs: Seg[] = [
        [`<|im_start|>user\n`, 0],
        [e.instruction, 0],
        ["<|im_end|>\n", 0],
      ];
      const turn = (text: string, calls: any[]): void => {
        segs.push(["<|im_start|>assistant\n", 0]);
        let s = text;
        for (const c of calls)
          s += `<tool_call>\n{"name": "${c.name}", "arguments": ${c.argumentsText}}\n</tool_call>`;
        segs.push([s + "<|im_end|>", 1], ["\n", 0]);
      };
      for (const t of e.turns) {
        turn(t.text ?? "", t.toolCalls);
        for (const r of t.results)
          segs.push(
            ["<|im_start|>tool\n", 0],
            [typeof r === "string" ? r : r.text, 0],
            ["<|im_end|>\n", 0],
          );
      }
      if (e.finalText !== undefined && e.finalText !== null) turn(e.finalText, []);
      return { family: task.family, segs };
    },
  );
const train = episodes("demonstration", 1, Number(process.argv[2] ?? 800));
const held = episodes("heldout", 1, 160);
const prefix = sys("/opt/pi", "/workspace");
const texts: { text: string; count: number }[] = [];
for (const p of split(prefix)) if (!specials.includes(p)) texts.push({ text: p, count: 200 });
for (const e of train.slice(0, 400))
  for (const [s] of e.segs)
    for (const p of split(s)) if (!specials.includes(p)) texts.push({ text: p, count: 1 });
const atomic = [
  ...deskWords,
  "src",
  "conf",
  "logs",
  "notes",
  ".js",
  ".json",
  ".ini",
  ".txt",
  ".log",
  ".md",
  "none",
];
const t0 = Date.now();
const tok = trainTokenizer({
  texts,
  atomic,
  specialTokens: specials,
  wordMerges: 500,
  vocabularySize: Number(process.argv[3] ?? 3072),
  minimumCount: 12,
});
console.log("vocab", tok.vocabularySize, (Date.now() - t0) / 1000);
fs.writeFileSync("/tmp/proto/tokenizer.json", JSON.stringify(tok.json));
fs.writeFileSync("/tmp/proto/data.json", JSON.stringify({ prefix, train, held }));
