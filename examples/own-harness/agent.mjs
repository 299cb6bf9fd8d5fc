/**
 * A coding agent in one loop on the official `openai` SDK: ask, run the tools it called, ask again, until it answers
 * with text. Endpoint, key, model and task come from the environment; it works in the current folder. What it sends
 * depends on the task alone: no date, no absolute path, no random id.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import OpenAI from "openai";

const text = { type: "string" };
const object = (properties) => ({ type: "object", required: Object.keys(properties), properties });
const edits = { type: "array", items: object({ oldText: text, newText: text }) };
/** Each tool: what it does, its parameters, and the doing. */
const toolbox = {
  read: ["Read a text file.", { path: text }, ({ path }) => readFileSync(path, "utf8")],
  bash: ["Run a bash command and get its output.", { command: text }, runBash],
  edit: ["Replace texts that each occur once.", { path: text, edits }, editFile],
  write: ["Write a file.", { path: text, content: text }, (file) => save(file.path, file.content)],
};
function save(path, content) {
  writeFileSync(path, content);
  return `Wrote ${path}.`;
}
function editFile({ path, edits }) {
  let content = readFileSync(path, "utf8");
  for (const { oldText, newText } of edits) {
    const parts = content.split(oldText);
    if (parts.length !== 2) throw new Error(`oldText occurs ${parts.length - 1} times in ${path}.`);
    content = parts.join(newText);
  }
  return save(path, content);
}
function runBash({ command }) {
  const options = { encoding: "utf8", timeout: 20_000 };
  const { status, stdout, stderr } = spawnSync("bash", ["-c", command], options);
  return `${stdout}${stderr}${status === 0 ? "" : `\nexit code ${status}`}`;
}
function answer({ name, arguments: json }) {
  try {
    if (!Object.hasOwn(toolbox, name)) throw new Error(`There is no tool ${name}.`);
    return toolbox[name][2](JSON.parse(json)).slice(0, 8000);
  } catch (error) {
    return `Error: ${error.message}`;
  }
}

const tools = Object.entries(toolbox).map(([name, [description, properties]]) => {
  return { type: "function", function: { name, description, parameters: object(properties) } };
});
const messages = [
  { role: "system", content: "You are a coding agent in a small repository. Look before you act." },
  { role: "user", content: process.env.GIMBAL_INSTRUCTION },
];
const tell = (event) => console.log(JSON.stringify(event));
const client = new OpenAI({ maxRetries: 1 });
try {
  for (let isDone = false; !isDone; ) {
    const request = { model: process.env.GIMBAL_MODEL, messages, tools };
    const [{ message }] = (await client.chat.completions.create(request)).choices;
    messages.push(message);
    for (const call of message.tool_calls ?? []) {
      const content = answer(call.function);
      messages.push({ role: "tool", tool_call_id: call.id, content });
      tell({ type: "tool", name: call.function.name, isError: content.startsWith("Error: ") });
    }
    isDone = !message.tool_calls?.length;
    if (isDone) tell({ type: "final", text: message.content });
  }
} catch (error) {
  tell({ type: "error", text: error.message });
  process.exitCode = 1;
}
