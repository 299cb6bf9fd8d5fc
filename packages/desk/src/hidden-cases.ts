/**
 * The hidden tests of fix-operator: a table of calls and results inside a test file.
 *
 * Law: the source runs in a process of its own that gets the calls alone. What they must give stays in the test's process:
 * the test file, which holds it, is deleted before the source runs. So nothing that the source does to its process (exit,
 * patched globals, a way out of its context) makes a test pass; it has to give the right numbers.
 */

/** A function, two numbers, and what it must give. */
export type HiddenCase = readonly [name: string, a: number, b: number, wanted: number];

/** The name of a case's test. */
export function hiddenCaseName([name, a, b]: HiddenCase): string {
  return `${name} of ${a} and ${b}`;
}

/** Runs in the child: answers calls with numbers, as JSON. An empty context keeps honest code from leaning on Node. */
const runnerText = [
  'const { readFileSync, writeSync } = require("node:fs");',
  'const { source, calls } = JSON.parse(readFileSync(0, "utf8"));',
  'const code = "const exports = {};\\n" + source + "\\n;exports";',
  'const functions = require("node:vm").runInNewContext(code, Object.create(null), { timeout: 1000 });',
  "const given = calls.map(([name, a, b]) => functions[name](a, b));",
  'writeSync(1, JSON.stringify(given.map((one) => (typeof one === "number" ? one : null))));',
].join("\n");

/** The text of the test file for the source at a path. */
export function hiddenTestText(path: string, cases: readonly HiddenCase[]): string {
  const calls = cases.map(([name, a, b]) => [name, a, b]);
  return [
    `"use strict";`,
    `const assert = require("node:assert");`,
    `const { spawnSync } = require("node:child_process");`,
    `const { readFileSync, unlinkSync } = require("node:fs");`,
    `const { test } = require("node:test");`,
    `const source = readFileSync("${path}", "utf8");`,
    `unlinkSync(__filename);`,
    `const input = JSON.stringify({ source, calls: ${JSON.stringify(calls)} });`,
    `const runner = ${JSON.stringify(runnerText)};`,
    `const options = { input, encoding: "utf8", env: {}, timeout: 5000, killSignal: "SIGKILL" };`,
    `const { stdout } = spawnSync(process.execPath, ["-e", runner], options);`,
    `let given = [];`,
    `try {`,
    `  given = JSON.parse(stdout);`,
    `} catch {}`,
    `let next = 0;`,
    `for (const [name, a, b, want] of ${JSON.stringify(cases)}) {`,
    `  const found = Array.isArray(given) ? given[next] : undefined;`,
    `  next += 1;`,
    `  test(name + " of " + a + " and " + b, () => assert.ok(found === want));`,
    `}`,
    "",
  ].join("\n");
}

/** The table of a test file, read back. */
export function hiddenCases(testText: string): readonly HiddenCase[] {
  const table = /want\] of (\[.*\])\) \{$/m.exec(testText)?.[1] ?? "[]";
  return JSON.parse(table) as readonly HiddenCase[];
}

/** The source that a test file is about. */
export function hiddenSourcePath(testText: string): string {
  return /readFileSync\("([^"]+)"/.exec(testText)?.[1] ?? "";
}

/**
 * What a hidden test stands for in the identity of a member: its first form. Ids, splits and seeds hang on it, so it stays
 * as it was when the demonstrations were recorded, however the tests are written today.
 */
export function hiddenTestIdentity(testText: string): string {
  const cases = hiddenCases(testText);
  if (cases.length === 0) return testText;
  return [
    `"use strict";`,
    `const assert = require("node:assert");`,
    `const { readFileSync } = require("node:fs");`,
    `const { test } = require("node:test");`,
    `const { runInNewContext } = require("node:vm");`,
    `const source = readFileSync("${hiddenSourcePath(testText)}", "utf8");`,
    `const code = "const exports = {};\\n" + source + "\\n;exports";`,
    `const functions = runInNewContext(code, Object.create(null), { timeout: 1000 });`,
    `for (const [name, a, b, want] of ${JSON.stringify(cases)}) {`,
    `  test(name + " of " + a + " and " + b, () => assert.ok(functions[name](a, b) === want));`,
    `}`,
    "",
  ].join("\n");
}
