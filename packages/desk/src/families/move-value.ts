/**
 * move-value: a value moves from one settings file to another; `none` marks the empty place.
 */
import {
  act,
  answerTo,
  type ExpertCall,
  type ExpertObservation,
  type ExpertTurn,
  editCall,
  grepFileCall,
  headCall,
  makeAll,
  stuck,
} from "../expert-turn.js";
import type { DeskFamily } from "../member.js";
import { settingOf, settingsText, withoutLineNumbers } from "../text-lines.js";
import { freshPath, otherSettings, replaceValue, settingsWith } from "./settings.js";

/** Move a value between two settings files. */
export const moveValue: DeskFamily = {
  name: "move-value",
  trained: true,
  summary: "read a value in one settings file, put it into another, leave `none` behind",
  phrasings: {
    plain: [
      "Move the value of `{key}` from `{from}` to `{to}`, where it is none. Leave none behind.",
      "`{key}` is set in `{from}` but belongs in `{to}`. Move the value and leave none behind.",
      "Take the value of `{key}` out of `{from}`, leave none there, and put it into `{to}`.",
      "Move `{key}` to `{to}`. Its value is in `{from}`, which must say none afterwards.",
    ],
  },
  draw(draw) {
    const key = draw.word();
    const value = draw.value();
    const from = freshPath(draw, "conf", "ini");
    const to = freshPath(draw, "conf", "ini");
    const source = settingsWith(draw, key, value, draw.between(2, 3));
    const target = settingsWith(draw, key, "none", draw.between(0, 2));
    return {
      variant: "plain",
      fields: { key, from, to },
      files: {
        ...otherSettings(draw, draw.between(0, 2)),
        [from]: settingsText(source),
        [to]: settingsText(target),
      },
      wanted: {
        [from]: settingsText(replaceValue(source, key, "none")),
        [to]: settingsText(replaceValue(target, key, value)),
      },
      protectedPaths: [],
      gradingFiles: {},
    };
  },
  next: (fields, observations) =>
    moveFound(fields, observations, grepFileCall(fields.key ?? "", fields.from ?? "")),
  // The first line alone: right when it sets the key.
  nextHasty: (fields, observations) =>
    moveFound(fields, observations, headCall(1, fields.from ?? "")),
};

function moveFound(
  { key = "", from = "", to = "" }: Readonly<Record<string, string>>,
  observations: readonly ExpertObservation[],
  look: ExpertCall,
): ExpertTurn {
  const text = answerTo(observations, look);
  if (text === null) return act(look);
  const value = settingOf(withoutLineNumbers(text), key);
  if (value === null) return stuck;
  return makeAll(observations, [
    editCall(to, `${key}=none`, `${key}=${value}`),
    editCall(from, `${key}=${value}`, `${key}=none`),
  ]);
}
