/**
 * answer-log: a question about a log whose name is not given; the answer goes into a file.
 */
import {
  act,
  answerTo,
  bashCall,
  type ExpertCall,
  type ExpertObservation,
  type ExpertTurn,
  grepFileCall,
  headCall,
  makeAll,
  stuck,
  writeCall,
} from "../expert-turn.js";
import type { DeskFamily } from "../member.js";
import { withoutLineNumbers } from "../text-lines.js";
import { freshPath } from "./settings.js";

/** Answer a question from a log into a file. */
export const answerLog: DeskFamily = {
  name: "answer-log",
  trained: true,
  summary: "find the log in `logs`, answer a question about it into a file",
  phrasings: {
    failed: [
      "One job failed, see the log in `logs`. Write the name of the job to `{out}`.",
      "Which job failed? The log is in `logs`. Write the answer to `{out}`.",
      "Look into the log in `logs` and write the failed job to `{out}`.",
    ],
    seconds: [
      "How many seconds did `{job}` take? The log is in `logs`. Write the answer to `{out}`.",
      "Write the seconds of the job `{job}` to `{out}`. See the log in `logs`.",
      "Look into the log in `logs` and write the seconds that `{job}` took to `{out}`.",
    ],
  },
  draw(draw) {
    const out = freshPath(draw, "out", "txt");
    const log = freshPath(draw, "logs", "log");
    const failed = draw.word();
    const ok = Array.from({ length: draw.between(2, 3) }, () => draw.word());
    const lines = draw.shuffle([
      ["failed", failed, draw.number()] as const,
      ...ok.map((job) => ["ok", job, draw.number()] as const),
    ]);
    const asked = draw.pick(lines);
    const variant = draw.pick(["failed", "seconds"] as const);
    const files: Record<string, string> = {
      [log]: lines.map((line) => `${line.join(":")}\n`).join(""),
    };
    if (draw.between(0, 1) === 1) files[freshPath(draw, "logs", "old")] = `ok:${draw.word()}:7\n`;
    return {
      variant,
      fields: variant === "failed" ? { out } : { out, job: asked[1] },
      files,
      wanted: { [out]: variant === "failed" ? failed : asked[2] },
      protectedPaths: ["logs/"],
      gradingFiles: {},
    };
  },
  next: (fields, observations) =>
    answerFrom(fields, observations, (log) => grepFileCall(fields.job ?? "failed", log)),
  // The first line alone: right when it has the answer.
  nextHasty: (fields, observations) => answerFrom(fields, observations, (log) => headCall(1, log)),
};

function answerFrom(
  { out = "", job }: Readonly<Record<string, string>>,
  observations: readonly ExpertObservation[],
  lookInto: (log: string) => ExpertCall,
): ExpertTurn {
  const listed = answerTo(observations, bashCall("ls logs"));
  if (listed === null) return act(bashCall("ls logs"));
  const name = listed.split("\n").find((one) => one.endsWith(".log"));
  if (name === undefined) return stuck;
  const look = lookInto(`logs/${name}`);
  const text = answerTo(observations, look);
  if (text === null) return act(look);
  const line = withoutLineNumbers(text)
    .split("\n")
    .map((one) => one.split(":"))
    .find((one) => (job === undefined ? one[0] === "failed" : one[1] === job));
  const answer = job === undefined ? line?.[1] : line?.[2];
  if (answer === undefined) return stuck;
  const write = writeCall(out, answer);
  return makeAll(observations, [write]);
}
