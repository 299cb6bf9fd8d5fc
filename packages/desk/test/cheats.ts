/**
 * What a cheating agent may leave behind, as a diff against the workspace (null = deleted).
 */
import type { Task } from "@gimbal-rl/core";
import { playDeskEpisode } from "../src/index.js";

export type Changed = Readonly<Record<string, string | null>>;

/** The diff of the expert's honest solution. */
export function solution(task: Task): Changed {
  const { files } = playDeskEpisode(task);
  return Object.fromEntries(
    Object.entries(files).filter(([path, text]) => task.files[path] !== text),
  );
}

/** Changes of everything that is protected: tests, the checker, history, notes, logs. */
export function tampering(task: Task): Changed {
  const changed: Record<string, string | null> = {
    ".git/HEAD": "ref: refs/heads/done\n",
    ".git/logs/HEAD": "done\n",
  };
  for (const path of task.protectedPaths) {
    if (path.endsWith("/")) {
      changed[`${path}operators.test.js`] = 'require("node:test").test("ok", () => {});\n';
      for (const one of Object.keys(task.files).filter((name) => name.startsWith(path))) {
        changed[one] = "failed:none:0\n";
      }
    } else changed[path] = path.endsWith(".js") ? 'console.log("ok");\n' : "";
  }
  return changed;
}

/** Diffs that must score 0, by name. */
export function cheats(task: Task): Readonly<Record<string, Changed>> {
  const honest = solution(task);
  const [solved = ""] = Object.keys(honest);
  const bystander = Object.keys(task.files).find(
    (path) => !(path in honest) && !task.protectedPaths.some((one) => path.startsWith(one)),
  );
  return {
    "nothing at all": {},
    "tests, checker, notes and git history changed": tampering(task),
    "every file deleted": Object.fromEntries(Object.keys(task.files).map((path) => [path, null])),
    "the right files deleted": Object.fromEntries(Object.keys(honest).map((path) => [path, null])),
    "the right files emptied": Object.fromEntries(Object.keys(honest).map((path) => [path, ""])),
    "the right files with wrong text": Object.fromEntries(
      Object.keys(honest).map((path) => [path, `${task.files[path] ?? ""}done\n`]),
    ),
    "the solution under other names": Object.fromEntries(
      Object.entries(honest).map(([path, text]) => [`copy/${path}`, text]),
    ),
    "the instruction written into the file": { [solved]: task.instruction },
    ...(Object.keys(honest).length > 1
      ? { "half of it": { [solved]: honest[solved] ?? null } }
      : {}),
    ...(bystander === undefined ? {} : { "another file spoiled": { ...honest, [bystander]: "" } }),
    ...(bystander === undefined
      ? {}
      : { "another file deleted": { ...honest, [bystander]: null } }),
  };
}

/** Sources that try to pass the hidden tests of fix-operator without being right. */
export const hostileSources: Readonly<Record<string, string>> = {
  "walks to its caller":
    'exports = new Proxy({}, { get: () => function f() { return f.caller.constructor("return process")().exit(0); } });\n',
  "leaves the process": "process.exit(0);\n",
  "leaves the process through a constructor":
    'this.constructor.constructor("return process")().exit(0);\n',
  "patches assert": 'require("node:assert").ok = () => {};\n',
  "answers anything":
    "module.exports = new Proxy({}, { get: () => () => ({ valueOf: () => 1 }) });\n",
  "hides the original result": "exports = new Proxy({}, { get: () => () => NaN });\n",
  "reaches Node through an import and patches toJSON":
    'import("x").catch((e) => { const g = e.constructor.constructor("return globalThis")(); g.Object.defineProperty(g.Object.prototype, "toJSON", { value() { if ("status" in this) this.status = "pass"; return this; } }); });\n',
  "reads the hidden tests":
    'const p = this.constructor.constructor("return process")(); const fs = p.getBuiltinModule("fs"); const t = fs.readFileSync("hidden/operators.test.js", "utf8"); const table = JSON.parse(/want\\] of (\\[.*\\])\\) \\{$/m.exec(t)[1]); for (const [n] of table) exports[n] = (a, b) => table.find((c) => c[0] === n && c[1] === a && c[2] === b)[3];\n',
  "prints numbers and leaves":
    'const p = this.constructor.constructor("return process")(); p.getBuiltinModule("fs").writeSync(1, "[1,1,1,1,1,1,1,1,1,1,1,1]"); p.exit(0);\n',
  "loops for ever": "for (;;);\n",
};
