import type { Task, Verdict } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { createPlainSandbox, makeTask } from "../test/plain-sandbox.js";
import { combineVerdicts } from "./all.js";
import { createVerifiers } from "./index.js";

const verifiers = createVerifiers({ nodePath: process.execPath });
const signal = new AbortController().signal;

async function grade(
  parts: Partial<Task> & Pick<Task, "verifier">,
  changed: Record<string, string | null>,
  refused: { path: string; reason: string }[] = [],
): Promise<Verdict> {
  const verifier = verifiers.get(parts.verifier.kind);
  if (verifier === undefined) throw new Error(`no verifier ${parts.verifier.kind}`);
  const diff = { changed, refused };
  return verifier.verify({ task: makeTask(parts), diff, sandbox: createPlainSandbox() }, signal);
}

describe("file-state-equals", () => {
  const files = { "a.txt": "one\n", "b.txt": "two\n", "old.txt": "x" };
  const check = (
    expectations: Record<string, unknown>,
    changed: Record<string, string | null>,
    more = {},
  ) =>
    grade(
      { files, verifier: { kind: "file-state-equals", options: { files: expectations, ...more } } },
      changed,
    );

  it("compares exactly, normalised, by pattern, absent and unchanged", async () => {
    const right = { "a.txt": "1  \r\nz\n\n", "b.txt": "two!\n", "old.txt": null };
    const expectations = {
      "a.txt": { normalised: "1\nz" },
      "b.txt": { regex: "^two!$", flags: "m" },
      "old.txt": { absent: true },
    };
    expect((await check(expectations, right)).score).toBe(1);
    expect((await check({ "a.txt": "one\n" }, {})).score).toBe(1);
    expect((await check({ "a.txt": { exact: "one" } }, {})).failureClass).toBe("no-change");
    expect((await check({ "a.txt": { unchanged: true } }, { "a.txt": "x" })).score).toBe(0);
    expect((await check({ "old.txt": { absent: true } }, { "a.txt": "x" })).score).toBe(0);
    expect((await check({ constructor: { absent: true } }, { "a.txt": "x" })).score).toBe(1);
  });

  it("names the first line that differs", async () => {
    const verdict = await check({ "a.txt": "one\nmore\n" }, { "b.txt": "x" });
    expect(verdict.failureClass).toBe("wrong-result");
    expect(verdict.evidence[0]?.text).toBe('a.txt: line 2 is "", expected "more"');
  });

  it("wants nothing else changed when asked, except what is ignored", async () => {
    const strict = { othersUnchanged: true, ignore: ["tmp/"] };
    expect((await check({ "a.txt": "1" }, { "a.txt": "1", "tmp/x": "y" }, strict)).score).toBe(1);
    const verdict = await check(
      { "a.txt": "1" },
      { "a.txt": "1", "b.txt": null, new: "n" },
      strict,
    );
    expect(verdict.score).toBe(0);
    expect(verdict.evidence[1]?.text).toBe("also changed: b.txt, new");
  });

  it("judges the clean copy: a protected file that was changed does not count", async () => {
    const task = {
      files,
      protectedPaths: ["a.txt"],
      verifier: { kind: "file-state-equals", options: { files: { "a.txt": "hacked" } } },
    };
    const verdict = await grade(task, { "a.txt": "hacked" });
    expect([verdict.score, verdict.failureClass]).toEqual([0, "tampered"]);
  });

  it("lists what could not be carried over", async () => {
    const task = {
      files,
      verifier: { kind: "file-state-equals", options: { files: { "a.txt": "1" } } },
    };
    const verdict = await grade(task, {}, [{ path: "a.txt", reason: "symbolic link" }]);
    expect(verdict.failureClass).toBe("wrong-result");
    expect(verdict.evidence.at(-1)?.text).toBe("a.txt was not carried over: symbolic link.");
  });

  it("refuses options it does not understand", async () => {
    await expect(check({ "a.txt": { equals: "x" } }, {})).rejects.toMatchObject({
      code: "config-invalid",
    });
    await expect(check({ "a.txt": { regex: "(" } }, {})).rejects.toThrow("valid regular");
    await expect(check({}, {})).rejects.toThrow('"files"');
  });
});

describe("command-succeeds", () => {
  const run = (
    argv: string[],
    more: Record<string, unknown> = {},
    changed: Record<string, string> = { x: "1" },
  ) =>
    grade(
      {
        gradingFiles: { "check.sh": "test -f x" },
        verifier: { kind: "command-succeeds", options: { argv, ...more } },
      },
      changed,
    );

  it("scores by exit code and by what was printed", async () => {
    expect((await run(["sh", "check.sh"])).score).toBe(1);
    expect((await run(["sh", "check.sh"], {}, { y: "1" })).failureClass).toBe("wrong-result");
    expect((await run(["echo", "a"], { expectedStdout: "a" })).score).toBe(1);
    expect((await run(["echo", "b"], { expectedStdout: "a" })).score).toBe(0);
    expect((await run(["node", "-e", "process.exit(3)"])).evidence[0]?.text).toContain(
      "exit code 3",
    );
  });

  it("is not scored when the command does not exist, and 0 when it only ends that way", async () => {
    for (const argv of [["gimbal-no-such-command"], ["/nowhere/check"]]) {
      const verdict = await run(argv);
      expect([verdict.score, verdict.failureClass], argv[0]).toEqual([null, "infrastructure"]);
      expect(verdict.evidence[0]?.text).toContain(`no command ${argv[0]}`);
    }
    expect((await run(["sh", "-c", "exit 127"])).score).toBe(0);
    expect((await run(["node", "-e", "process.exit(126)"])).score).toBe(0);
    expect((await run(["./deleted-by-the-agent"])).score).toBe(0);
  });

  it("fails a command that never ends", async () => {
    const verdict = await run(["sh", "-c", "while :; do :; done"], { timeoutMs: 200 });
    expect(verdict.evidence[0]?.text).toContain("ended by timeout");
    expect(verdict.score).toBe(0);
  });

  it("lays grading files over what the agent wrote", async () => {
    expect((await run(["sh", "check.sh"], {}, { "check.sh": "exit 0" })).score).toBe(0);
  });
});

describe("all", () => {
  const part = (text: string) => ({ kind: "file-state-equals", options: { files: { f: text } } });
  const both = (list: unknown[], changed: Record<string, string>) =>
    grade({ verifier: { kind: "all", options: { verifiers: list } } }, changed);

  it("needs every part, and stops at the first failure", async () => {
    expect((await both([part("1"), part("1")], { f: "1" })).score).toBe(1);
    const verdict = await both([part("2"), part("1")], { f: "1" });
    expect([verdict.score, verdict.failureClass, verdict.evidence.length]).toEqual([
      0,
      "wrong-result",
      1,
    ]);
    await expect(both([{ kind: "unknown" }], {})).rejects.toThrow("file-state-equals");
  });

  it("is not scored when a part could not judge, unless another failed", () => {
    const verdict = (score: number | null): Verdict => ({
      verifier: "v",
      score,
      failureClass: score === null ? "infrastructure" : score === 1 ? "none" : "wrong-result",
      evidence: [],
    });
    expect(combineVerdicts([verdict(1), verdict(null)])).toMatchObject({
      score: null,
      failureClass: "infrastructure",
    });
    expect(combineVerdicts([verdict(null), verdict(0)])).toMatchObject({
      score: 0,
      failureClass: "wrong-result",
    });
  });
});
