/**
 * Prints expert episodes of a split as JSONL, played against the simulated tools.
 *
 *   npx tsx -C @gimbal-rl/source packages/desk/scripts/print-episodes.mjs --split demonstration --count 300 --seed 1
 *
 * Options: --split, --seed, --count, --families a,b (default: all of the split), --files (adds the workspace).
 */
import { parseArgs } from "node:util";
import { createDeskTasks, playDeskEpisode } from "../src/index.ts";

const { values } = parseArgs({
  options: {
    split: { type: "string", default: "demonstration" },
    seed: { type: "string", default: "1" },
    count: { type: "string", default: "10" },
    families: { type: "string" },
    files: { type: "boolean", default: false },
  },
});
const tasks = createDeskTasks({
  split: values.split,
  seed: Number(values.seed),
  count: Number(values.count),
  ...(values.families === undefined ? {} : { families: values.families.split(",") }),
});
for (const task of tasks) {
  const { files: _, ...episode } = playDeskEpisode(task);
  const line = values.files ? { ...episode, files: task.files, verifier: task.verifier } : episode;
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
