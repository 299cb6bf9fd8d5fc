/**
 * rename-function: a function and its callers, found by searching.
 */
import {
  act,
  answerTo,
  type ExpertObservation,
  type ExpertTurn,
  editCall,
  grepCall,
  makeAll,
  stuck,
} from "../expert-turn.js";
import type { DeskFamily } from "../member.js";
import { foundLines } from "../text-lines.js";

/** Rename a function and its callers. */
export const renameFunction: DeskFamily = {
  name: "rename-function",
  trained: true,
  summary: "search `src` for a function, rename it where it is defined and where it is called",
  phrasings: {
    plain: [
      "Rename the function `{before}` to `{after}` in `src`, callers too.",
      "In `src`, the function `{before}` must be called `{after}` everywhere.",
      "Change the name of `{before}` to `{after}` in every file of `src`.",
    ],
  },
  draw(draw) {
    const before = draw.word();
    const after = draw.word();
    const home = draw.word();
    const operator = draw.pick(["+", "-", "*"]);
    const source = (name: string): Record<string, string> => {
      const files: Record<string, string> = {
        [`src/${home}.js`]: `exports.${name} = (a, b) => a ${operator} b;\n`,
      };
      for (const [file, caller, number] of callers) {
        files[`src/${file}.js`] =
          `const it = require("./${home}.js");\nexports.${caller} = () => it.${name}(${number}, 2);\n`;
      }
      return files;
    };
    const callers = Array.from({ length: draw.between(0, 2) }, () => {
      return [draw.word(), draw.word(), draw.between(3, 9)] as const;
    });
    const others: Record<string, string> = {};
    for (let i = draw.between(0, 2); i > 0; i -= 1) {
      others[`src/${draw.word()}.js`] = `exports.${draw.word()} = () => ${draw.between(0, 9)};\n`;
    }
    return {
      variant: "plain",
      fields: { before, after },
      files: { ...others, ...source(before) },
      wanted: source(after),
      protectedPaths: [],
      gradingFiles: {},
    };
  },
  next({ before = "", after = "" }, observations) {
    return renameFound(observations, before, before, after);
  },
  // The definition alone: right when nobody calls it.
  nextHasty: ({ before = "", after = "" }, observations) =>
    renameFound(observations, `exports.${before}`, before, after),
};

/** Searches `src` for a text and renames in every file that has it. */
function renameFound(
  observations: readonly ExpertObservation[],
  text: string,
  before: string,
  after: string,
): ExpertTurn {
  const look = grepCall(text, "src");
  const found = answerTo(observations, look);
  if (found === null) return act(look);
  const paths = foundLines(found).map((line) => line.path);
  if (paths.length === 0) return stuck;
  return makeAll(
    observations,
    paths.map((path) => editCall(path, before, after)),
  );
}
