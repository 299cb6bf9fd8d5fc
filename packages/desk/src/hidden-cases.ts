/**
 * The hidden tests of fix-operator: a table of calls and results inside a test file.
 *
 * Law: the tests run the source as text in an empty context, so that `process.exit`, patched globals or a changed
 * `check.js` cannot make them pass.
 */

/** A function, two numbers, and what it must give. */
export type HiddenCase = readonly [name: string, a: number, b: number, wanted: number];

/** The name of a case's test. */
export function hiddenCaseName([name, a, b]: HiddenCase): string {
  return `${name} of ${a} and ${b}`;
}

/** The text of the test file for the source at a path. */
export function hiddenTestText(path: string, cases: readonly HiddenCase[]): string {
  return [
    `"use strict";`,
    `const assert = require("node:assert");`,
    `const { readFileSync } = require("node:fs");`,
    `const { test } = require("node:test");`,
    `const { runInNewContext } = require("node:vm");`,
    `const source = readFileSync("${path}", "utf8");`,
    `const code = "const exports = {};\\n" + source + "\\n;exports";`,
    `const functions = runInNewContext(code, Object.create(null), { timeout: 1000 });`,
    `for (const [name, a, b, want] of ${JSON.stringify(cases)}) {`,
    `  test(name + " of " + a + " and " + b, () => assert.ok(functions[name](a, b) === want));`,
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
