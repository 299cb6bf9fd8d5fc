/**
 * change-setting: one of several files sets the key; find it and change it there.
 */
import {
  act,
  answerTo,
  bashCall,
  editCall,
  grepCall,
  makeAll,
  readCall,
  stuck,
} from "../expert-turn.js";
import type { DeskFamily } from "../member.js";
import { foundLines, settingOf, settingsText } from "../text-lines.js";
import { freshPath, otherSettings, replaceValue, settingsWith } from "./settings.js";

/** Apply an edit to the right one of several files. */
export const changeSetting: DeskFamily = {
  name: "change-setting",
  trained: true,
  summary: "find the one file in `conf` that sets a key, change the value there",
  phrasings: {
    plain: [
      "One file in `conf` sets `{key}`. Change it to `{value}`.",
      "Set `{key}` to `{value}` in the config that has it. The configs are in `conf`.",
      "Find `{key}` in `conf` and give it the value `{value}`.",
      "`{key}` must be `{value}`. Fix the file in `conf` that sets it.",
    ],
  },
  draw(draw) {
    const key = draw.word();
    const value = draw.value();
    const path = freshPath(draw, "conf", "ini");
    const lines = settingsWith(draw, key, draw.value(), draw.between(0, 3));
    return {
      variant: "plain",
      fields: { key, value },
      files: { ...otherSettings(draw, draw.between(2, 4)), [path]: settingsText(lines) },
      wanted: { [path]: settingsText(replaceValue(lines, key, value)) },
      protectedPaths: [],
      gradingFiles: {},
    };
  },
  next({ key = "", value = "" }, observations) {
    const look = grepCall(key, "conf");
    const found = answerTo(observations, look);
    if (found === null) return act(look);
    const line = foundLines(found).find((one) => one.text.startsWith(`${key}=`));
    if (line === undefined) return stuck;
    const edit = editCall(line.path, line.text, `${key}=${value}`);
    return makeAll(observations, [edit]);
  },
  // The first file of the folder: right when it is the one that sets the key.
  nextHasty({ key = "", value = "" }, observations) {
    const listed = answerTo(observations, bashCall("ls conf"));
    if (listed === null) return act(bashCall("ls conf"));
    const path = `conf/${listed.split("\n")[0] ?? ""}`;
    const text = answerTo(observations, readCall(path));
    if (text === null) return act(readCall(path));
    const before = settingOf(text, key);
    if (before === null) return stuck;
    const edit = editCall(path, `${key}=${before}`, `${key}=${value}`);
    return makeAll(observations, [edit]);
  },
};
