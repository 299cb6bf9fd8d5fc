/**
 * An in-memory imitation of Pi 1.6.0's tool results, for the calls of this suite. For tests and prototypes only:
 * demonstrations and demos use the real Pi.
 *
 * Law: where a call is supported, the text equals Pi's byte for byte (checked by scripts/compare-with-pi.mjs);
 * an unsupported shell command answers as if the command did not exist.
 */

import type { ExpertCall } from "./expert-turn.js";
import { simulateBash } from "./simulate-bash.js";

/** Relative path to text. */
export type DeskFiles = Readonly<Record<string, string>>;

/** What a tool answered and the files afterwards. */
export interface SimulatedResult {
  readonly text: string;
  readonly isError: boolean;
  readonly files: DeskFiles;
}

/** Runs one call on files held in memory. `workspaceDir` appears in some error texts. */
export function simulateDeskTool(
  files: DeskFiles,
  call: ExpertCall,
  workspaceDir = "/workspace",
): SimulatedResult {
  const fail = (text: string): SimulatedResult => ({ text, isError: true, files });
  let input: unknown;
  try {
    input = JSON.parse(call.argumentsText);
  } catch {
    return fail(`Validation failed for tool "${call.name}": the arguments are not JSON`);
  }
  const { path, content, command, edits, offset, limit } = input as Record<string, unknown>;
  switch (call.name) {
    case "read":
      return typeof path === "string"
        ? simulateRead(files, path, workspaceDir, offset, limit)
        : fail(`Validation failed for tool "read":\n  - path: must have required properties path`);
    case "write":
      if (typeof path !== "string" || typeof content !== "string") {
        return fail(`Validation failed for tool "write"`);
      }
      if (isFolder(files, path)) {
        const where = `${workspaceDir}/${relative(path)}`;
        return fail(`EISDIR: illegal operation on a directory, open '${where}'`);
      }
      return {
        text: `Successfully wrote to ${path}`,
        isError: false,
        files: { ...files, [relative(path)]: content },
      };
    case "edit":
      return typeof path === "string" && isEdits(edits)
        ? simulateEdit(files, path, edits)
        : fail(`Validation failed for tool "edit"`);
    case "bash":
      return typeof command === "string"
        ? { ...simulateBash(files, command), files }
        : fail(`Validation failed for tool "bash"`);
    default:
      return fail(`Tool ${call.name} not found`);
  }
}

function relative(path: string): string {
  return path.replace(/^(?:\.\/)+/, "");
}

function isFolder(files: DeskFiles, path: string): boolean {
  const folder = `${relative(path).replace(/\/$/, "")}/`;
  return Object.keys(files).some((one) => one.startsWith(folder));
}

function simulateRead(
  files: DeskFiles,
  path: string,
  workspaceDir: string,
  offset: unknown,
  limit: unknown,
): SimulatedResult {
  const text = files[relative(path)];
  if (text === undefined) {
    const where = `${workspaceDir}/${relative(path)}`;
    return {
      text: isFolder(files, path)
        ? "EISDIR: illegal operation on a directory, read"
        : `ENOENT: no such file or directory, access '${where}'`,
      isError: true,
      files,
    };
  }
  const lines = text.split("\n");
  const start = typeof offset === "number" && offset > 0 ? offset - 1 : 0;
  if (start >= lines.length) {
    const message = `Offset ${start + 1} is beyond end of file (${lines.length} lines total)`;
    return { text: message, isError: true, files };
  }
  const end = typeof limit === "number" ? Math.min(start + limit, lines.length) : lines.length;
  const shown = lines.slice(start, end).join("\n");
  const left = lines.length - end;
  const more =
    left > 0 ? `\n\n[${left} more lines in file. Use offset=${end + 1} to continue.]` : "";
  return { text: shown + more, isError: false, files };
}

interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

function isEdits(value: unknown): value is readonly Edit[] {
  return (
    Array.isArray(value) &&
    value.every((one: Partial<Edit> | null) => {
      return typeof one?.oldText === "string" && typeof one.newText === "string";
    })
  );
}

function simulateEdit(files: DeskFiles, path: string, edits: readonly Edit[]): SimulatedResult {
  const fail = (text: string): SimulatedResult => ({ text, isError: true, files });
  const before = files[relative(path)];
  if (edits.length === 0) {
    return fail("Edit tool input is invalid. edits must contain at least one replacement.");
  }
  if (before === undefined) {
    const code = isFolder(files, path) ? "EISDIR" : "ENOENT";
    return fail(
      code === "EISDIR"
        ? "EISDIR: illegal operation on a directory, read"
        : `Could not edit file: ${path}. Error code: ENOENT.`,
    );
  }
  const single = edits.length === 1;
  const spans: { readonly start: number; readonly edit: Edit }[] = [];
  for (const [index, edit] of edits.entries()) {
    const name = single ? "oldText" : `edits[${index}].oldText`;
    if (edit.oldText === "") return fail(`${name} must not be empty in ${path}.`);
    const count = before.split(edit.oldText).length - 1;
    if (count === 0) {
      return fail(
        single
          ? `Could not find the exact text in ${path}. The old text must match exactly including all whitespace and newlines.`
          : `Could not find edits[${index}] in ${path}. The oldText must match exactly including all whitespace and newlines.`,
      );
    }
    if (count > 1) {
      return fail(
        single
          ? `Found ${count} occurrences of the text in ${path}. The text must be unique. Please provide more context to make it unique.`
          : `Found ${count} occurrences of edits[${index}] in ${path}. Each oldText must be unique. Please provide more context to make it unique.`,
      );
    }
    spans.push({ start: before.indexOf(edit.oldText), edit });
  }
  let after = before;
  for (const { start, edit } of spans.toSorted((a, b) => b.start - a.start)) {
    after = after.slice(0, start) + edit.newText + after.slice(start + edit.oldText.length);
  }
  if (after === before) {
    return fail(
      single
        ? `No changes made to ${path}. The replacement produced identical content. This might indicate an issue with special characters or the text not existing as expected.`
        : `No changes made to ${path}. The replacements produced identical content.`,
    );
  }
  return {
    text: `Successfully replaced ${edits.length} block(s) in ${path}.`,
    isError: false,
    files: { ...files, [relative(path)]: after },
  };
}
