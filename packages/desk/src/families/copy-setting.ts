/**
 * copy-setting, the family held out whole: a note names the file that holds the value; it goes into a third file.
 * Composed of skills of the other families: follow a path from a tool result, look a key up, fill a `none`.
 */
import { act, answerTo, editCall, makeAll, readCall, stuck } from "../expert-turn.js";
import type { DeskFamily } from "../member.js";
import { settingOf, settingsText } from "../text-lines.js";
import { freshPath, otherSettings, replaceValue, settingsWith } from "./settings.js";

/** Copy a setting named in a note from one file into another. */
export const copySetting: DeskFamily = {
  name: "copy-setting",
  trained: false,
  summary: "a note names the file that holds a value; copy the value into another file",
  phrasings: {
    plain: [
      "`NOTE` names the config that sets `{key}`. Copy the value to `{to}`, where it is none.",
      "Read `NOTE` to find the config with the value of `{key}` and put it into `{to}`, where it is none.",
      "`{key}` is none in `{to}`. Give it the value from the config that `NOTE` names.",
    ],
  },
  draw(draw) {
    const key = draw.word();
    const value = draw.value();
    const from = freshPath(draw, "conf", "ini");
    const to = freshPath(draw, "conf", "ini");
    const source = settingsWith(draw, key, value, draw.between(0, 2));
    const target = settingsWith(draw, key, "none", draw.between(0, 2));
    const others = otherSettings(draw, draw.between(0, 2));
    const note = draw.shuffle([
      [key, from] as const,
      ...Object.keys(others).map((path) => [draw.word(), path] as const),
    ]);
    return {
      variant: "plain",
      fields: { key, to },
      files: {
        ...others,
        NOTE: settingsText(note),
        [from]: settingsText(source),
        [to]: settingsText(target),
      },
      wanted: { [to]: settingsText(replaceValue(target, key, value)) },
      protectedPaths: ["NOTE"],
      gradingFiles: {},
    };
  },
  next({ key = "", to = "" }, observations) {
    const note = answerTo(observations, readCall("NOTE"));
    if (note === null) return act(readCall("NOTE"));
    const from = settingOf(note, key);
    if (from === null) return stuck;
    const text = answerTo(observations, readCall(from));
    if (text === null) return act(readCall(from));
    const value = settingOf(text, key);
    if (value === null) return stuck;
    const edit = editCall(to, `${key}=none`, `${key}=${value}`);
    return makeAll(observations, [edit]);
  },
};
