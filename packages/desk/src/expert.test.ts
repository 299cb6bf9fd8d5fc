import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { allSplits, someTasks } from "../test/text-checks.js";
import { playDeskEpisode } from "./episode.js";
import { createDeskExpert } from "./expert.js";
import { editCall, grepFileCall, headCall, readCall } from "./expert-turn.js";
import { deskFamilies } from "./families.js";
import { simulateDeskGrading } from "./simulate-grading.js";
import { createDeskTasks } from "./tasks.js";

describe("the scripted expert", { timeout: 30_000 }, () => {
  it("solves every task of every split", () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(...allSplits), (seed, split) => {
        for (const task of createDeskTasks({ split, seed, count: 8 })) {
          const episode = playDeskEpisode(task);
          expect(episode.finalText).toBe("Done.");
          expect(simulateDeskGrading(task, episode.files), JSON.stringify(episode)).toBe(true);
          expect(simulateDeskGrading(task, task.files)).toBe(false);
        }
      }),
    );
  });

  it("looks before it acts and needs two to five calls", () => {
    for (const { turns } of someTasks(3, 40).map((task) => playDeskEpisode(task))) {
      const names = turns.flatMap((turn) => turn.toolCalls.map((call) => call.name));
      expect(names.length).toBeGreaterThanOrEqual(2);
      expect(names.length).toBeLessThanOrEqual(5);
      expect(["read", "bash"]).toContain(names[0]);
      expect(["edit", "write"]).toContain(names.at(-1));
    }
  });

  it("uses no name or number that the instruction and the results so far do not show", () => {
    for (const task of someTasks(5, 80)) {
      const { turns } = playDeskEpisode(task);
      // The suite's own conventions, and the port that is counted up.
      let seen = `${task.instruction} none logs src conf NOTE HISTORY ls node grep rn sort js n a b `;
      for (const turn of turns) {
        for (const { argumentsText } of turn.toolCalls) {
          const keys = /"(?:path|command|edits|oldText|newText|content)":/g;
          for (const word of argumentsText.replace(keys, "").match(/\w+/g) ?? []) {
            const shown = new RegExp(`\\b${word}\\b`).test(seen);
            const counted =
              task.family === "bump-port" && new RegExp(`=${Number(word) - 1}\\b`).test(seen);
            expect(shown || counted, `${word} in ${argumentsText} of ${task.taskId}`).toBe(true);
          }
        }
        seen += turn.results.join("\n");
      }
    }
  });

  it("stays short: all calls and results of a task are under 700 characters", () => {
    for (const { turns } of someTasks(6, 80).map((task) => playDeskEpisode(task))) {
      const texts = turns.flatMap((turn) => [
        ...turn.results,
        ...turn.toolCalls.map((call) => call.argumentsText),
      ]);
      expect(texts.join("").length).toBeLessThan(700);
    }
  });

  it("follows the results it is given, not the task it was made for", () => {
    const instruction =
      "Move `lamp` to `conf/moss.ini`. Its value is in `conf/fern.ini`, which must say none afterwards.";
    const expert = createDeskExpert({ instruction });
    const look = expert.next([]).toolCalls[0];
    const search = grepFileCall("lamp", "conf/fern.ini");
    expect(look).toEqual(search);
    for (const value of ["47", "river"]) {
      const seen = [{ ...search, text: `1:lampshade=3\n2:lamp=${value}\n` }];
      const edit = editCall("conf/moss.ini", "lamp=none", `lamp=${value}`);
      expect(expert.next(seen).toolCalls).toEqual([edit]);
    }
  });

  it("reads the file after an edit that failed, and stops when that does not help", () => {
    const expert = createDeskExpert({ instruction: "Undo the last change in `HISTORY`." });
    const history = { ...readCall("HISTORY"), text: "--- conf/fern.ini\n-moss=1\n+moss=2\n" };
    const edit = editCall("conf/fern.ini", "moss=2", "moss=1");
    expect(expert.next([history]).toolCalls).toEqual([edit]);
    const failed = { ...edit, text: "Could not find the exact text in conf/fern.ini. The old" };
    expect(expert.next([history, failed]).toolCalls).toEqual([readCall("conf/fern.ini")]);
    const read = { ...readCall("conf/fern.ini"), text: "moss=9\n" };
    expect(expert.next([history, failed, read]).toolCalls).toEqual([edit]);
    const end = expert.next([history, failed, read, failed]);
    expect(end).toEqual({ text: "Not done.", toolCalls: [] });
  });

  it("says that it is stuck when a look fails", () => {
    const expert = createDeskExpert({ instruction: "Undo the last change in `HISTORY`." });
    const text = "ENOENT: no such file or directory, access '/workspace/HISTORY'";
    expect(expert.next([{ ...readCall("HISTORY"), text }]).text).toBe("Not done.");
  });

  it("refuses an instruction it does not know", () => {
    expect(() => createDeskExpert({ instruction: "Write a poem." })).toThrow("no phrasing");
  });
});

describe("the hasty habit", { timeout: 30_000 }, () => {
  it("solves a part of every trained family, and nothing it did not look at", () => {
    const families = deskFamilies.filter((one) => one.trained).map((one) => one.name);
    for (const family of families) {
      const tasks = createDeskTasks({ split: "train", seed: 8, count: 200, families: [family] });
      const solved = tasks.filter((task) =>
        simulateDeskGrading(task, playDeskEpisode(task, "hasty").files),
      ).length;
      // 0.24 to 0.34 by design; three standard deviations of 200 draws are 0.1.
      expect(solved / tasks.length, family).toBeGreaterThan(0.12);
      expect(solved / tasks.length, family).toBeLessThan(0.46);
    }
  });

  it("leaves the workspace as it is when the short cut shows nothing", () => {
    for (const task of someTasks(4, 60)) {
      const episode = playDeskEpisode(task, "hasty");
      if (episode.finalText !== "Not done.") continue;
      expect(episode.files).toEqual(task.files);
    }
  });

  it("opens the first entry where the careful habit reads all", () => {
    const instruction = "Undo the last change in `HISTORY`.";
    const look = createDeskExpert({ instruction }, "hasty").next([]).toolCalls[0];
    expect(look).toEqual(headCall(3, "HISTORY"));
    const text = "--- conf/fern.ini\n-moss=1\n+moss=2\n";
    const next = createDeskExpert({ instruction }, "hasty").next([
      { ...headCall(3, "HISTORY"), text },
    ]);
    expect(next.toolCalls).toEqual([editCall("conf/fern.ini", "moss=2", "moss=1")]);
  });

  it("gives up after an edit that failed", () => {
    const instruction = "Undo the last change in `HISTORY`.";
    const history = { ...headCall(3, "HISTORY"), text: "--- conf/fern.ini\n-moss=1\n+moss=2\n" };
    const edit = editCall("conf/fern.ini", "moss=2", "moss=1");
    const failed = { ...edit, text: "Could not find the exact text in conf/fern.ini. The old" };
    const end = createDeskExpert({ instruction }, "hasty").next([history, failed]);
    expect(end).toEqual({ text: "Not done.", toolCalls: [] });
  });

  it("is careful in a family without a short cut", () => {
    const tasks = createDeskTasks({ split: "heldout-family", seed: 1, count: 5 });
    for (const task of tasks) {
      expect(playDeskEpisode(task, "hasty")).toEqual(playDeskEpisode(task));
    }
  });
});
