/**
 * Runs the expert's calls, and calls that fail, through the real tools of an installed Pi and compares the texts with
 * simulateDeskTool. Needs the Node that Pi needs (22 for 1.6.0) and GNU coreutils.
 *
 *   node22 --import tsx -C @gimbal-rl/source packages/desk/scripts/compare-with-pi.mjs --pi /tmp/pi --count 40
 */
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { createDeskExpert, createDeskTasks, simulateDeskTool } from "../src/index.ts";

const { values } = parseArgs({
  options: {
    pi: { type: "string", default: "/tmp/pi" },
    count: { type: "string", default: "40" },
    seed: { type: "string", default: "1" },
  },
});
const folder = join(values.pi, "node_modules/@earendil-works/pi-coding-agent/dist/core/tools");
const load = async (name, factory, cwd) =>
  (await import(pathToFileURL(join(folder, `${name}.js`)).href))[factory](cwd);

const call = (name, input) => ({ name, argumentsText: JSON.stringify(input) });
/** Calls that a policy may try; the first file of the task stands in for a path. */
const tries = (path) => [
  call("read", { path, limit: 1 }),
  call("read", { path, offset: 9 }),
  call("read", { path: "conf/absent.ini" }),
  call("read", { path: dirname(path) }),
  call("bash", { command: `cat ${path}` }),
  call("bash", { command: "ls" }),
  call("bash", { command: "cat absent" }),
  call("bash", { command: "ls absent" }),
  call("bash", { command: "absent" }),
  call("bash", { command: "grep -rn 'absent' . | sort" }),
  call("bash", { command: "grep -rn 'absent' ." }),
  call("edit", { path, edits: [{ oldText: "absent", newText: "x" }] }),
  call("edit", { path, edits: [{ oldText: "", newText: "x" }] }),
  call("edit", { path, edits: [{ oldText: "\n", newText: "\n" }] }),
  call("edit", { path, edits: [] }),
  call("edit", { path: "absent", edits: [{ oldText: "a", newText: "x" }] }),
  call("write", { path: dirname(path), content: "x" }),
];

const tasks = ["train", "heldout-family"].flatMap((split) =>
  createDeskTasks({ split, seed: Number(values.seed), count: Number(values.count) }),
);
let compared = 0;
const different = [];
for (const task of tasks) {
  const cwd = await realpath(await mkdtemp(join(tmpdir(), "desk-pi-")));
  for (const [path, text] of Object.entries(task.files)) {
    await mkdir(dirname(join(cwd, path)), { recursive: true });
    await writeFile(join(cwd, path), text);
  }
  const tools = {
    read: await load("read", "createReadTool", cwd),
    bash: await load("bash", "createBashTool", cwd),
    edit: await load("edit", "createEditTool", cwd),
    write: await load("write", "createWriteTool", cwd),
  };
  let files = task.files;
  const observations = [];
  const step = async (one) => {
    let text;
    try {
      const result = await tools[one.name].execute("1", JSON.parse(one.argumentsText));
      text = result.content.map((part) => part.text).join("");
    } catch (error) {
      text = error.message;
    }
    const imitation = simulateDeskTool(files, one, cwd);
    files = imitation.files;
    compared += 1;
    if (text !== imitation.text) different.push({ call: one, pi: text, imitation: imitation.text });
    observations.push({ ...one, text });
  };
  const expert = createDeskExpert(task);
  for (let turn = 0; turn < 12; turn += 1) {
    const { toolCalls } = expert.next(observations);
    if (toolCalls.length === 0) break;
    for (const one of toolCalls) await step(one);
  }
  if (task === tasks[0]) for (const one of tries(Object.keys(task.files).at(-1))) await step(one);
  if (task === tasks[2]) for (const one of tries(Object.keys(task.files)[0])) await step(one);
  await rm(cwd, { recursive: true });
}
process.stdout.write(`${JSON.stringify({ compared, different }, null, 2)}\n`);
process.exitCode = different.length === 0 ? 0 : 1;
