/**
 * A coding agent in one loop on the official `openai` SDK: ask, run the tools it called, ask again, until it answers
 * with text. It reads its endpoint, key, model and task from the environment and works in the current folder.
 * What it sends depends on the task alone: no date, no absolute path, no random id.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import OpenAI from "openai";

const tool = (name, description, ...fields) => {
  const properties = Object.fromEntries(fields.map((field) => [field, { type: "string" }]));
  const parameters = { type: "object", required: fields, properties };
  return { type: "function", function: { name, description, parameters } };
};
const tools = [
  tool("read", "Read a text file.", "path"),
  tool("bash", "Run a bash command and get its output.", "command"),
  tool("edit", "Replace a text that occurs once in a file.", "path", "oldText", "newText"),
  tool("write", "Write a file, replacing it when it exists.", "path", "content"),
];
const run = {
  read: ({ path }) => readFileSync(path, "utf8").slice(0, 8000),
  bash: ({ command }) => {
    const { status, stdout, stderr } = spawnSync("bash", ["-c", command], {
      encoding: "utf8",
      timeout: 20_000,
    });
    return `${stdout}${stderr}`.slice(-8000) + (status === 0 ? "" : `\nexit code ${status}`);
  },
  edit: ({ path, oldText, newText }) => {
    const parts = readFileSync(path, "utf8").split(oldText);
    if (parts.length !== 2) throw new Error(`oldText occurs ${parts.length - 1} times in ${path}.`);
    writeFileSync(path, parts.join(newText));
    return `Edited ${path}.`;
  },
  write: ({ path, content }) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    return `Wrote ${path}.`;
  },
};
function answer({ name, arguments: text }) {
  try {
    return run[name](JSON.parse(text));
  } catch (error) {
    return `Error: ${error.message}`;
  }
}

process.on("uncaughtException", ({ message }) => {
  console.error(message);
  process.exit(1);
});
const client = new OpenAI({ maxRetries: 1 });
const messages = [
  { role: "system", content: "You are a coding agent in a small repository. Look before you act." },
  { role: "user", content: process.env.GIMBAL_INSTRUCTION },
];
for (;;) {
  const model = process.env.GIMBAL_MODEL;
  const { choices } = await client.chat.completions.create({ model, messages, tools });
  const { message } = choices[0];
  messages.push(message);
  for (const call of message.tool_calls ?? []) {
    const content = answer(call.function);
    messages.push({ role: "tool", tool_call_id: call.id, content });
    console.log(JSON.stringify({ type: "tool", name: call.function.name, result: content }));
  }
  if (!message.tool_calls?.length) {
    console.log(JSON.stringify({ type: "final", text: message.content }));
    break;
  }
}
