import type { Task, Verdict } from "@gimbal-rl/core";
import { describe, expect, it } from "vitest";
import { createVerifiers } from "../src/index.js";
import { createPlainSandbox, makeTask } from "./plain-sandbox.js";

const verifier = createVerifiers({ nodePath: process.execPath }).get("node-tests-pass");
const files = {
  "package.json": '{"type":"module"}',
  "src/add.js": "export const add = (a, b) => a - b;\n",
  "test/add.test.js": `import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { add } from "../src/add.js";
describe("add", () => {
  test("adds", () => assert.equal(add(2, 2), 4));
  test("adds zero", () => assert.equal(add(3, 0), 3));
});
test("later", { skip: true }, () => {});
`,
};
const expected = { "add > adds": "pass", "add > adds zero": "pass", later: "skip" };

function addTask(options: Record<string, unknown> = {}): Task {
  return makeTask({
    files,
    protectedPaths: ["test/"],
    verifier: {
      kind: "node-tests-pass",
      options: { files: ["test/add.test.js"], expected, ...options },
    },
  });
}

async function grade(
  changed: Record<string, string | null>,
  options: Record<string, unknown> = {},
): Promise<Verdict> {
  const sandbox = createPlainSandbox();
  const input = { task: addTask(options), diff: { changed, refused: [] }, sandbox };
  const verdict = await verifier?.verify(input, new AbortController().signal);
  expect(sandbox.open()).toBe(0);
  if (verdict === undefined) throw new Error("not registered");
  return verdict;
}

const good = "export const add = (a, b) => a + b;\n";
const failed = (verdict: Verdict) =>
  verdict.evidence.filter((entry) => !entry.passed).map((entry) => entry.text);

describe("node-tests-pass", () => {
  it("scores a right solution 1, with one piece of evidence per test", async () => {
    const verdict = await grade({ "src/add.js": good });
    expect(verdict.score, JSON.stringify(verdict.evidence)).toBe(1);
    expect(verdict.failureClass).toBe("none");
    expect(verdict.evidence.map((entry) => entry.text)).toEqual([
      "add > adds: pass",
      "add > adds zero: pass",
      "later: skip",
    ]);
  });

  it("scores no change and a wrong change 0, and says which test failed", async () => {
    expect((await grade({})).failureClass).toBe("no-change");
    const verdict = await grade({ "src/add.js": "export const add = (a, b) => a * b;\n" });
    expect([verdict.score, verdict.failureClass]).toEqual([0, "wrong-result"]);
    expect(failed(verdict)[0]).toContain("add > adds zero: fail, expected pass");
  });

  it("ignores changed tests and says so", async () => {
    const easy = { "test/add.test.js": "" };
    const verdict = await grade(easy);
    expect([verdict.score, verdict.failureClass]).toEqual([0, "tampered"]);
    const right = await grade({ ...easy, "src/add.js": good });
    expect([right.score, right.failureClass]).toEqual([1, "none"]);
    expect(failed(right)[0]).toContain("test/add.test.js was changed");
  });

  const tricks: Record<string, string> = {
    "exits with code 0": "process.exit(0); export const add = 0;",
    "prints a report in TAP": `console.log("TAP version 13\\nok 1 - adds\\n1..1"); export const add = (a, b) => a - b;`,
    "replaces the assertions": `import assert from "node:assert/strict"; import { syncBuiltinESMExports } from "node:module";
      try { assert.equal = () => {}; } catch {} try { syncBuiltinESMExports(); } catch {} export const add = (a, b) => a - b;`,
    "registers tests of its own": `import { test, describe } from "node:test"; describe("add", () => { test("adds", () => {}); test("adds zero", () => {}); }); export const add = (a, b) => a - b;`,
    "looks for the nonce and prints results": `import { readdirSync, readFileSync, writeSync } from "node:fs";
      const dir = process.argv[1].replace(/driver.mjs$/, ""); let nonce = ""; try { nonce = readFileSync(dir + "nonce", "utf8"); } catch {}
      nonce ||= readFileSync("/proc/self/environ", "latin1").match(/NONCE=([^\\0]*)/)?.[1] ?? "";
      writeSync(1, "\\n" + nonce + '[{"name":"add > adds","type":"test","status":"pass","message":""}]\\n'); process.exit(0); export const add = 0;`,
    "calls the reporter itself": `const { default: report } = await import(process.argv[1].replace("driver", "reporter"));
      const fake = async function* () { yield { type: "test:pass", data: { name: "adds", nesting: 0, details: {} } }; };
      for await (const _ of report(fake())) {} process.exit(0); export const add = 0;`,
    "says that everything passed whenever it is written as JSON": `Object.defineProperty(Object.prototype, "toJSON", { configurable: true,
      value() { if ("status" in this) this.status = "pass"; return this; } }); export const add = () => 0;`,
    "catches results as they are put into a list": `for (let i = 0; i < 50; i += 1) Object.defineProperty(Array.prototype, i, { configurable: true,
      set(v) { if (v && v.status) v.status = "pass"; Object.defineProperty(this, i, { value: v, writable: true, enumerable: true, configurable: true }); } });
      export const add = () => 0;`,
    "replaces String and the text of objects": `globalThis.String = () => "pass"; Object.prototype.toString = () => '"},{"name":"add > adds"';
      export const add = () => { throw { message: {} }; };`,
    "fails to load": "export const add = ;",
    "takes the start line back": `import { closeSync, openSync, readSync } from "node:fs";
      for (const path of [1, "/proc/self/fd/1", "/dev/stdout"]) try { readSync(typeof path === "number" ? path : openSync(path, "r"), Buffer.alloc(4096)); } catch {}
      try { closeSync(1); } catch {} process.exit(127); export const add = 0;`,
    "ends like a program that was not found": "process.exit(127); export const add = 0;",
  };
  for (const [name, source] of Object.entries(tricks)) {
    it(`is not fooled by code that ${name}`, async () => {
      const verdict = await grade({ "src/add.js": source });
      expect([verdict.score, verdict.failureClass]).toEqual([0, "wrong-result"]);
    });
  }

  it("ends an endless loop and a flood of output", async () => {
    const loop = await grade(
      { "src/add.js": "export const add = 0; for (;;);" },
      { timeoutMs: 700 },
    );
    expect([loop.score, failed(loop)[0]]).toEqual([0, "The tests were ended by timeout."]);
    const flood = "for (;;) process.stdout.write('x'.repeat(65536)); export const add = 0;";
    const verdict = await grade(
      { "src/add.js": flood },
      { maxOutputBytes: 100_000, timeoutMs: 5_000 },
    );
    expect(verdict.score).toBe(0);
  });

  it("is not scored when the grader did not start, and says why", async () => {
    const gone = createVerifiers({ nodePath: "/nowhere/bin/node" }).get("node-tests-pass");
    const input = { task: addTask(), diff: { changed: { "src/add.js": good }, refused: [] } };
    const sandbox = createPlainSandbox();
    const verdict = await gone?.verify({ ...input, sandbox }, new AbortController().signal);
    expect([verdict?.score, verdict?.failureClass]).toEqual([null, "infrastructure"]);
    expect(verdict?.evidence[0]?.text).toContain("did not start");
    expect(sandbox.open()).toBe(0);
  });

  it("is not scored when the sandbox fails, and refuses bad options by name", async () => {
    const input = {
      task: makeTask({
        verifier: { kind: "node-tests-pass", options: { files: ["a"], expected: { a: "pass" } } },
      }),
      diff: { changed: {}, refused: [] },
      sandbox: { level: "process" as const, create: () => Promise.reject(new Error("disk full")) },
    };
    const verdict = await verifier?.verify(input, new AbortController().signal);
    expect([verdict?.score, verdict?.failureClass]).toEqual([null, "infrastructure"]);
    expect(verdict?.evidence[0]?.text).toContain("disk full");
    await expect(grade({}, { expected: { a: "green" } })).rejects.toMatchObject({
      code: "config-invalid",
    });
    await expect(grade({}, { tests: 1 })).rejects.toThrow(/"tests"/);
  });
});
