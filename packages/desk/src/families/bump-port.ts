/**
 * bump-port: a log names the service whose port is taken; its port in `conf` goes up by one.
 */
import {
  act,
  answerTo,
  type ExpertCall,
  type ExpertObservation,
  type ExpertTurn,
  editCall,
  grepCall,
  grepFileCall,
  headCall,
  makeAll,
  stuck,
} from "../expert-turn.js";
import type { DeskFamily } from "../member.js";
import { foundLines, settingsText, withoutLineNumbers } from "../text-lines.js";
import { freshPath, otherSettings, replaceValue, settingsWith } from "./settings.js";

/** Raise the port that the error log names. */
export const bumpPort: DeskFamily = {
  name: "bump-port",
  trained: true,
  summary: "an error log names a service whose port is taken; find its port and raise it by one",
  phrasings: {
    plain: [
      "A port is taken, see `{log}`. Find that service in `conf` and raise its port by one.",
      "`{log}` names a service whose port is taken. Raise the port by one in `conf`.",
      "The start failed, the reason is in `{log}`. Use the next port for that service in `conf`.",
    ],
  },
  draw(draw) {
    const service = draw.word();
    // The last digit stays below 9, so that no digit carries.
    const port = `${draw.between(1, 9)}${draw.between(0, 8)}`;
    const path = freshPath(draw, "conf", "ini");
    const log = freshPath(draw, "logs", "log");
    const lines = settingsWith(draw, service, port, draw.between(0, 3));
    const logLines = [`${service}: port is taken`];
    for (let i = draw.between(2, 3); i > 0; i -= 1) logLines.push(`${draw.word()}: ok`);
    return {
      variant: "plain",
      fields: { log },
      files: {
        ...otherSettings(draw, draw.between(0, 2)),
        [log]: `${draw.shuffle(logLines).join("\n")}\n`,
        [path]: settingsText(lines),
      },
      wanted: { [path]: settingsText(replaceValue(lines, service, String(Number(port) + 1))) },
      protectedPaths: ["logs/"],
      gradingFiles: {},
    };
  },
  next: ({ log = "" }, observations) => raisePort(observations, grepFileCall("port", log)),
  // The first line alone: right when it is the one that complains.
  nextHasty: ({ log = "" }, observations) => raisePort(observations, headCall(1, log)),
};

function raisePort(observations: readonly ExpertObservation[], lookInto: ExpertCall): ExpertTurn {
  const text = answerTo(observations, lookInto);
  if (text === null) return act(lookInto);
  const service = /^(\w+): port is taken$/m.exec(withoutLineNumbers(text))?.[1];
  if (service === undefined) return stuck;
  const look = grepCall(service, "conf");
  const found = answerTo(observations, look);
  if (found === null) return act(look);
  const line = foundLines(found).find((one) => one.text.startsWith(`${service}=`));
  if (line === undefined) return stuck;
  const port = Number(line.text.slice(service.length + 1));
  const edit = editCall(line.path, line.text, `${service}=${port + 1}`);
  return makeAll(observations, [edit]);
}
