/**
 * Reads a task that came from outside: a task file, the `tasks.json` of a run.
 *
 * Law: what comes out is a {@link Task} in every field; the first thing that is not is named, and nothing unknown is
 * dropped, because a misspelt field would change what is asked or how it is judged.
 */
import { GimbalError } from "./errors.js";
import { asId, type TaskId } from "./ids.js";
import type { Budgets, Task, VerifierSpec } from "./task.js";

const splits: Readonly<Record<Task["split"], true>> = {
  train: true,
  heldout: true,
  "heldout-family": true,
  demonstration: true,
  pivot: true,
};

const budgetNames: Readonly<Record<keyof Budgets, true>> = {
  maxCalls: true,
  maxSampledTokens: true,
  maxContextTokens: true,
  maxTokensPerCall: true,
  wallClockMs: true,
};

type Fields = Readonly<Record<string, unknown>>;

/**
 * Checks a value and gives it back as a task.
 *
 * @throws {GimbalError} `config-invalid`; the message and `details.field` name the field, for example `budgets.maxCalls`.
 * @example
 * parseTask(JSON.parse(line));
 */
export function parseTask(value: unknown): Task {
  const task = requireRecord(value, "the task");
  const { split } = task;
  const parsed: Task = {
    taskId: asId<TaskId>(requireText(task.taskId, "taskId")),
    suite: requireText(task.suite, "suite"),
    family: requireText(task.family, "family"),
    split: isSplit(split) ? split : fail("split", split, `one of ${namesOf(splits)}`),
    instruction: requireText(task.instruction, "instruction"),
    files: requireTexts(task.files, "files"),
    protectedPaths: requirePaths(task.protectedPaths, "protectedPaths"),
    gradingFiles: requireTexts(task.gradingFiles, "gradingFiles"),
    verifier: parseVerifier(task.verifier),
    budgets: parseBudgets(task.budgets),
  };
  refuseOthers(task, { ...parsed }, "");
  return parsed;
}

function parseVerifier(value: unknown): VerifierSpec {
  const { kind, options, ...others } = requireRecord(value, "verifier");
  refuseOthers(others, {}, "verifier.", "kind, options");
  return {
    kind: requireText(kind, "verifier.kind"),
    options: requireRecord(options, "verifier.options"),
  };
}

function parseBudgets(value: unknown): Budgets {
  const budgets = requireRecord(value, "budgets");
  refuseOthers(budgets, budgetNames, "budgets.");
  for (const [name, limit] of Object.entries(budgets)) {
    if (Number.isSafeInteger(limit) && (limit as number) > 0) continue;
    fail(`budgets.${name}`, limit, "a whole number above 0");
  }
  return budgets;
}

function requireTexts(value: unknown, field: string): Readonly<Record<string, string>> {
  const files = requireRecord(value, field);
  for (const [path, text] of Object.entries(files)) {
    if (path === "") fail(field, path, "a path");
    if (typeof text !== "string") fail(`${field}[${JSON.stringify(path)}]`, text, "a text");
  }
  return files as Readonly<Record<string, string>>;
}

function requirePaths(value: unknown, field: string): readonly string[] {
  if (!Array.isArray(value)) return fail(field, value, "a list of paths");
  for (const [index, path] of value.entries()) requireText(path, `${field}[${index}]`);
  return value as readonly string[];
}

function requireText(value: unknown, field: string): string {
  return typeof value === "string" && value !== "" ? value : fail(field, value, "a text");
}

function requireRecord(value: unknown, field: string): Fields {
  const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
  return isRecord ? (value as Fields) : fail(field, value, "an object");
}

function refuseOthers(found: Fields, known: Fields, prefix: string, names = namesOf(known)): void {
  const other = Object.keys(found).find((name) => !Object.hasOwn(known, name));
  if (other !== undefined) fail(`${prefix}${other}`, found[other], `no such field, only ${names}`);
}

function isSplit(value: unknown): value is Task["split"] {
  return typeof value === "string" && Object.hasOwn(splits, value);
}

function namesOf(record: Fields): string {
  return Object.keys(record).join(", ");
}

function fail(field: string, found: unknown, expected: string): never {
  const shown = found === undefined ? "missing" : (JSON.stringify(found) ?? String(found));
  throw new GimbalError(
    "config-invalid",
    `Task field ${field} is ${shown.length > 80 ? `${shown.slice(0, 80)}…` : shown}; expected ${expected}.`,
    { boundary: "config", details: { field } },
  );
}
