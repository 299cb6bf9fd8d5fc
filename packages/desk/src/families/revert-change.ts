/**
 * revert-change: HISTORY holds small patches, newest last; the last one is undone.
 */
import {
  act,
  answerTo,
  type ExpertObservation,
  type ExpertTurn,
  editCall,
  headCall,
  makeAll,
  readCall,
  stuck,
} from "../expert-turn.js";
import type { DeskFamily } from "../member.js";
import { settingsText } from "../text-lines.js";
import { freshPath, otherSettings, replaceValue, settingsWith } from "./settings.js";

/** Undo the last recorded change. */
export const revertChange: DeskFamily = {
  name: "revert-change",
  trained: true,
  summary: "`HISTORY` holds patches, newest last; undo the last one",
  phrasings: {
    plain: [
      "Undo the last change in `HISTORY`.",
      "The last change was wrong. Revert it; `HISTORY` has all changes, the newest last.",
      "Revert the newest change. It is at the end of `HISTORY`.",
      "Take back what the last entry of `HISTORY` did.",
    ],
  },
  draw(draw) {
    const files: Record<string, string> = otherSettings(draw, draw.between(0, 1));
    const wanted: Record<string, string> = {};
    const changes = draw.between(1, 4);
    let history = "";
    for (let i = 0; i < changes; i += 1) {
      const path = freshPath(draw, "conf", "ini");
      const key = draw.word();
      const before = draw.value();
      const after = draw.value();
      const lines = settingsWith(draw, key, after, draw.between(0, 2));
      history += `--- ${path}\n-${key}=${before}\n+${key}=${after}\n`;
      files[path] = settingsText(lines);
      if (i === changes - 1) wanted[path] = settingsText(replaceValue(lines, key, before));
    }
    files.HISTORY = history;
    return {
      variant: "plain",
      fields: {},
      files,
      wanted,
      protectedPaths: ["HISTORY"],
      gradingFiles: {},
    };
  },
  next(_, observations) {
    const text = answerTo(observations, readCall("HISTORY"));
    if (text === null) return act(readCall("HISTORY"));
    return undoLast(observations, text);
  },
  // The first entry, as if it were the last.
  nextHasty(_, observations) {
    const look = headCall(3, "HISTORY");
    const text = answerTo(observations, look);
    return text === null ? act(look) : undoLast(observations, text);
  },
};

function undoLast(observations: readonly ExpertObservation[], history: string): ExpertTurn {
  const last = [...history.matchAll(/^--- (\S+)\n-(.*)\n\+(.*)$/gm)].at(-1);
  const [path, before, after] = [last?.[1], last?.[2], last?.[3]];
  if (path === undefined || before === undefined || after === undefined) return stuck;
  const edit = editCall(path, after, before);
  return makeAll(observations, [edit]);
}
