/**
 * `pnpm tiny:build`: makes the tiny policy from nothing. Stages can be run one by one:
 *
 *   tokenizer   capture Pi's prompt, train the tokenizer
 *   record      the expert through the real Pi and the gateway -> fixtures/demonstrations
 *   warm-up     copy text -> .gimbal/tiny/warm-up
 *   train       SFT on the demonstrations -> .gimbal/tiny/sft
 *   score       pass@1 of one checkpoint in the real harness: `score <step> [tasks]`
 *   habits      how often the attempts of a stored run took a short cut: `habits <run folder>`
 *   select      evaluate checkpoints in the real harness, write the chosen one to packages/gimbal-tiny/model
 */

const stages: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
  tokenizer: async () => {
    const { buildTokenizer } = await import("./build-tokenizer.js");
    const { vocabularySize } = await buildTokenizer();
    process.stderr.write(`tokenizer: ${vocabularySize} tokens\n`);
  },
  record: async () => {
    const { recordDemonstrations } = await import("./record.js");
    const { demonstrationSets } = await import("./demonstration-sets.js");
    for (const set of demonstrationSets) {
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
  train: async ([steps = "700", threads = "2"]) => {
    const { trainOnDemonstrations } = await import("./train.js");
    await trainOnDemonstrations(Number(threads), Number(steps));
  },
  score: async ([step = "", tasks = "70"]) => {
    const { scoreCheckpoint } = await import("./select.js");
    process.stdout.write(`${JSON.stringify(await scoreCheckpoint(Number(step), Number(tasks)))}\n`);
  },
  habits: async ([runDir = ""]) => {
    const { countHabits } = await import("./habits.js");
    for (const { attempts, hasty, phase } of await countHabits(runDir)) {
      const share = ((100 * hasty) / attempts).toFixed(1);
      process.stdout.write(
        `${phase}: ${hasty} of ${attempts} attempts with a short cut (${share} %)\n`,
      );
    }
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

/** Stages that only measure are no part of a whole build. */
const skippedByDefault = ["score", "habits"];

const [stage, ...args] = process.argv.slice(2);
if (stage !== undefined && stages[stage] === undefined) {
  process.stderr.write(`Unknown stage "${stage}"; expected ${Object.keys(stages).join(", ")}.\n`);
  process.exit(2);
}
for (const [name, run] of Object.entries(stages)) {
  if (stage === undefined ? !skippedByDefault.includes(name) : stage === name) await run(args);
}
