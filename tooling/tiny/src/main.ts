/**
 * `pnpm tiny:build`: makes the tiny policy from nothing. Stages can be run one by one:
 *
 *   tokenizer   capture Pi's prompt, train the tokenizer
 *   record      the expert through the real Pi and the gateway -> fixtures/demonstrations
 *   warm-up     copy text -> .gimbal/tiny/warm-up
 *   train       SFT on the demonstrations -> .gimbal/tiny/sft
 *   select      evaluate checkpoints in the real harness, write the chosen one to packages/gimbal-tiny/model
 */

const stages: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  tokenizer: async () => {
    const { buildTokenizer } = await import("./build-tokenizer.js");
    const { vocabularySize } = await buildTokenizer();
    process.stderr.write(`tokenizer: ${vocabularySize} tokens\n`);
  },
  record: async ([tiny = "4000", pivot = "112"]) => {
    const { recordDemonstrations } = await import("./record.js");
    const sets = [
      { name: "tiny", split: "demonstration", seed: 1, count: Number(tiny) },
      { name: "pivot", split: "pivot", seed: 1, count: Number(pivot) },
    ] as const;
    for (const set of sets) {
      if (set.count === 0) continue;
      const { kept } = await recordDemonstrations({
        ...set,
        concurrency: 3,
        onProgress: (done, total) => {
          if (done % 20 === 0 || done === total)
            process.stderr.write(`${set.name}: ${done} of ${total}\n`);
        },
      });
      process.stderr.write(`${set.name}: ${kept} demonstrations kept\n`);
    }
  },
  "warm-up": async ([threads = "2"]) => {
    const { warmUp } = await import("./train.js");
    await warmUp(Number(threads));
  },
  train: async ([steps = "480", threads = "2"]) => {
    const { trainOnDemonstrations } = await import("./train.js");
    await trainOnDemonstrations(Number(threads), Number(steps));
  },
  score: async ([step = "", tasks = "70"]) => {
    const { scoreCheckpoint } = await import("./select.js");
    process.stdout.write(`${JSON.stringify(await scoreCheckpoint(Number(step), Number(tasks)))}\n`);
  },
  select: async ([target = "0.3", tasks = "70"]) => {
    const { bundleCheckpoint, selectCheckpoint } = await import("./select.js");
    const scores = await selectCheckpoint(Number(target), Number(tasks));
    const last = scores.at(-1);
    if (last === undefined || last.passAt1 < Number(target)) {
      throw new RangeError("No checkpoint reaches the target; train longer.");
    }
    await bundleCheckpoint(last.step);
  },
};

/** Stages of a whole build; `score` only measures. */
const skippedByDefault = "score";

const [stage, ...args] = process.argv.slice(2);
for (const [name, run] of Object.entries(stages)) {
  if (stage === undefined ? name !== skippedByDefault : stage === name) await run(args);
}
