/**
 * The two scripts that run inside a grading copy for `node-tests-pass`.
 *
 * Laws: nothing that the graded code prints counts, because results are one line that begins with a nonce the code
 * never sees (read and deleted before any of it is loaded); the reporter works once; assertions are frozen first. That
 * the grader started is a line of its own, written before any graded code is loaded, with a text of its own: who could
 * read it back from the stream would not learn the nonce, and a socket or pipe that someone else reads gives nothing back.
 * What this cannot stop is code that reads or rewrites the test files beside it, searches its own process's memory or
 * rewrites Node's internals: a task that expects such an agent runs the code in a child process that gets inputs alone,
 * and keeps what they must give in the test's process (the suite `desk` does).
 */

/** Name of the test by which the driver makes Node start its reporter. */
export const startTestName = "gimbal:start";

/**
 * `reporter.mjs`. Results are joined as text from primitives: a method, an index setter or a `toJSON` that the graded code
 * puts on a prototype is never looked up. Names lie in an object without a prototype.
 */
export const reporterScript: string = `import { readFileSync, unlinkSync, writeSync } from "node:fs";
const file = new URL("./nonce", import.meta.url);
const [startMark, nonce] = readFileSync(file, "utf8").split(" ");
unlinkSync(file);
const { stringify } = JSON;
const write = writeSync;
write(1, startMark + "\\n");
let start;
export const started = new Promise((resolve) => { start = resolve; });
let used = false;
export default async function* report(source) {
  if (used) return;
  used = true;
  start();
  let results = "";
  const names = Object.create(null);
  for await (const { type, data } of source) {
    if (type === "test:start") {
      names[data.nesting] = "" + data.name;
    } else if (type === "test:pass" || type === "test:fail") {
      let path = "";
      for (let i = 0; i < data.nesting; i += 1) path += names[i] + " > ";
      const skipped = data.skip !== undefined && data.skip !== false;
      const todo = data.todo !== undefined && data.todo !== false;
      const kind = data.details && data.details.type === "suite" ? "suite" : "test";
      const status = skipped || todo ? "skip" : type === "test:pass" ? "pass" : "fail";
      const error = type === "test:fail" ? data.details.error : null;
      const message = (error && (error.cause?.message ?? error.message)) ?? "";
      results += (results === "" ? "" : ",") + '{"name":' + stringify(path + data.name) +
        ',"type":"' + kind + '","status":"' + status + '","message":' + stringify("" + message) + "}";
    }
  }
  write(1, "\\n" + nonce + "[" + results + "]\\n");
}
`;

/** `driver.mjs`. Loads the test files one after another in one process. */
export const driverScript: string = `import assert from "node:assert";
import { resolve } from "node:path";
import nodeTest from "node:test";
import { pathToFileURL } from "node:url";
import { started } from "./reporter.mjs";
void nodeTest.mock; void nodeTest.snapshot;
for (const value of [assert, assert.strict, nodeTest]) Object.freeze(value);
await nodeTest.test(${JSON.stringify(startTestName)}, () => {});
await started;
for (const file of process.argv.slice(2)) await import(pathToFileURL(resolve(file)).href);
`;
