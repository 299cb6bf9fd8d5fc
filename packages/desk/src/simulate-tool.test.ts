import { describe, expect, it } from "vitest";
import { bashCall, editCall, isErrorText, readCall, writeCall } from "./expert-turn.js";
import { simulateDeskTool } from "./simulate-tool.js";

// The texts were printed by the real tools of Pi 1.6.0 (scripts/compare-with-pi.mjs compares many more).
const files = {
  "check.js":
    'const { lamp } = require("./src/coin.js");\nif (lamp(6, 3) === 9) console.log("ok");\nelse {\n  console.log("src/coin.js:lamp: must be the sum");\n  process.exitCode = 1;\n}\n',
  "conf/apple.ini": "fern=1\nlamp=none\n",
  "conf/river.ini": "lamp=47\nmoss=12\n",
  "src/coin.js": "exports.lamp = (a, b) => a - b;\n",
};
const text = (call: Parameters<typeof simulateDeskTool>[1]): string =>
  simulateDeskTool(files, call, "/w").text;

describe("simulateDeskTool", () => {
  it("reads as Pi does", () => {
    expect(text(readCall("conf/river.ini"))).toBe("lamp=47\nmoss=12\n");
    const part = { name: "read", argumentsText: '{"path": "conf/river.ini", "limit": 1}' };
    expect(text(part)).toBe("lamp=47\n\n[2 more lines in file. Use offset=2 to continue.]");
    expect(text(readCall("conf/zap.ini"))).toBe(
      "ENOENT: no such file or directory, access '/w/conf/zap.ini'",
    );
    expect(text(readCall("conf"))).toBe("EISDIR: illegal operation on a directory, read");
  });

  it("runs the commands of the suite as bash does", () => {
    expect(text(bashCall("ls conf"))).toBe("apple.ini\nriver.ini\n");
    expect(text(bashCall("ls"))).toBe("check.js\nconf\nsrc\n");
    expect(text(bashCall("grep -rn 'lamp' conf | sort"))).toBe(
      "conf/apple.ini:2:lamp=none\nconf/river.ini:1:lamp=47\n",
    );
    expect(text(bashCall("grep -n 'lamp' conf/apple.ini"))).toBe("2:lamp=none\n");
    expect(text(bashCall("grep -n 'zap' conf/apple.ini"))).toBe(
      "(no output)\n\nCommand exited with code 1",
    );
    expect(text(bashCall("grep -n 'lamp' conf/zap.ini"))).toBe(
      "grep: conf/zap.ini: No such file or directory\n\n\nCommand exited with code 2",
    );
    expect(text(bashCall("grep -rn 'zap' conf | sort"))).toBe("(no output)");
    expect(text(bashCall("grep -rn 'zap' ."))).toBe("(no output)\n\nCommand exited with code 1");
    expect(text(bashCall("cat conf/zap.ini"))).toBe(
      "cat: conf/zap.ini: No such file or directory\n\n\nCommand exited with code 1",
    );
    expect(text(bashCall("node check.js"))).toBe(
      "src/coin.js:lamp: must be the sum\n\n\nCommand exited with code 1",
    );
  });

  it("edits once, and only where the text is unique", () => {
    const fixed = simulateDeskTool(files, editCall("src/coin.js", "a - b", "a + b"));
    expect(fixed.text).toBe("Successfully replaced 1 block(s) in src/coin.js.");
    expect(simulateDeskTool(fixed.files, bashCall("node check.js")).text).toBe("ok\n");
    expect(text(editCall("src/coin.js", "zzz", "y"))).toBe(
      "Could not find the exact text in src/coin.js. The old text must match exactly including all whitespace and newlines.",
    );
    expect(text(editCall("src/coin.js", "a", "y"))).toBe(
      "Found 3 occurrences of the text in src/coin.js. The text must be unique. Please provide more context to make it unique.",
    );
    expect(text(editCall("src/zap.js", "a", "y"))).toBe(
      "Could not edit file: src/zap.js. Error code: ENOENT.",
    );
  });

  it("marks errors so that the expert knows them from their text", () => {
    const calls = [
      readCall("absent"),
      readCall("conf"),
      bashCall("cat absent"),
      editCall("absent", "a", "b"),
      editCall("src/coin.js", "a", "b"),
      editCall("src/coin.js", "lamp", "lamp"),
      writeCall("conf", "x"),
    ];
    for (const call of calls) {
      const result = simulateDeskTool(files, call);
      expect(result.isError).toBe(true);
      expect(isErrorText(result.text), result.text).toBe(true);
      expect(result.files).toBe(files);
    }
    expect(isErrorText(text(readCall("conf/river.ini")))).toBe(false);
  });

  it("writes new files", () => {
    const result = simulateDeskTool(files, writeCall("out/x.txt", "moss"));
    expect(result.text).toBe("Successfully wrote to out/x.txt");
    expect(result.files["out/x.txt"]).toBe("moss");
  });
});
