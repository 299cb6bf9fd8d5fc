/**
 * What the scripted expert sees and does, and the few calls its fixed style knows.
 *
 * Law: an expert turn is a function of observations; argument text is JSON with a space after `:` and `,`, as the
 * Qwen tool-call format prints it.
 */

/** One tool call, arguments as the JSON text that is sent. */
export interface ExpertCall {
  readonly name: string;
  readonly argumentsText: string;
}

/** One finished call with the text the tool answered. */
export interface ExpertObservation extends ExpertCall {
  readonly text: string;
}

/** One assistant turn. No tool calls = the final answer. */
export interface ExpertTurn {
  readonly text?: string;
  readonly toolCalls: readonly ExpertCall[];
}

/** `read` of a whole file. */
export function readCall(path: string): ExpertCall {
  return { name: "read", argumentsText: `{"path": ${JSON.stringify(path)}}` };
}

/** `bash` with one command. */
export function bashCall(command: string): ExpertCall {
  return { name: "bash", argumentsText: `{"command": ${JSON.stringify(command)}}` };
}

/** `grep` for a word in one file. */
export function grepFileCall(word: string, path: string): ExpertCall {
  return bashCall(`grep -n '${word}' ${path}`);
}

/** `bash` for the first lines of a file. */
export function headCall(lines: number, path: string): ExpertCall {
  return bashCall(`head -n ${lines} ${path}`);
}

/** `edit` with one replacement. */
export function editCall(path: string, oldText: string, newText: string): ExpertCall {
  const [where, before, after] = [path, oldText, newText].map((text) => JSON.stringify(text));
  return {
    name: "edit",
    argumentsText: `{"path": ${where}, "edits": [{"oldText": ${before}, "newText": ${after}}]}`,
  };
}

/** `write` of a whole file. */
export function writeCall(path: string, content: string): ExpertCall {
  return {
    name: "write",
    argumentsText: `{"path": ${JSON.stringify(path)}, "content": ${JSON.stringify(content)}}`,
  };
}

/** `grep` for a word in a folder; sorted, because readdir order differs between file systems. */
export function grepCall(word: string, folder: string): ExpertCall {
  return bashCall(`grep -rn '${word}' ${folder} | sort`);
}

/** A turn with one call. */
export function act(call: ExpertCall): ExpertTurn {
  return { toolCalls: [call] };
}

/** The final answer. */
const done: ExpertTurn = { text: "Done.", toolCalls: [] };

/** The final answer when the tools do not show what is needed. */
export const stuck: ExpertTurn = { text: "Not done.", toolCalls: [] };

const errorPattern =
  /^(?:ENOENT|EISDIR|Could not |Found \d+ occurrences|No changes made|oldText must not|Edit tool input|Validation failed|Offset )|Command exited with code \d+$/;

/** Whether a tool answered with an error, judged from its text alone (all that a model sees). */
export function isErrorText(text: string): boolean {
  return errorPattern.test(text);
}

/** The latest answer to exactly this call, error or not; null when it was not made yet. */
export function answerTo(
  observations: readonly ExpertObservation[],
  call: ExpertCall,
): string | null {
  const found = observations.findLast(
    (one) => one.name === call.name && one.argumentsText === call.argumentsText,
  );
  return found === undefined ? null : found.text;
}

/** The first of the calls that has not been made; the final answer when all were. */
export function makeAll(
  observations: readonly ExpertObservation[],
  calls: readonly ExpertCall[],
): ExpertTurn {
  const open = calls.find((call) => answerTo(observations, call) === null);
  return open === undefined ? done : act(open);
}
