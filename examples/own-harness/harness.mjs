/**
 * The agent of `agent.mjs` as a harness for Gimbal: how it is started, and how its output is read.
 *
 * At level `namespace` the agent sees nothing of this machine but what is mounted here, at paths that are the same
 * everywhere; at level `process` it runs in place.
 */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { defineHarness } from "@gimbal-rl/harness";

const agent = fileURLToPath(new URL("agent.mjs", import.meta.url));
/** The SDK needs no other package, so that its folder is all there is to mount. */
const openai = dirname(fileURLToPath(import.meta.resolve("openai")));
const inside = "/opt/own-harness";

export default defineHarness({
  id: "own-harness",
  version: "1",
  command: ({ sandboxLevel }) =>
    sandboxLevel === "namespace"
      ? {
          argv: [`${inside}/bin/node`, `${inside}/agent.mjs`],
          readOnlyMounts: [
            { hostPath: process.execPath, insidePath: `${inside}/bin/node` },
            { hostPath: agent, insidePath: `${inside}/agent.mjs` },
            { hostPath: openai, insidePath: `${inside}/node_modules/openai` },
          ],
        }
      : { argv: [process.execPath, agent] },
  readOutcome: ({ exitCode, stdout, stderr }) => {
    const events = stdout.split("\n").flatMap((line) => (line.startsWith("{") ? parse(line) : []));
    const textOf = (type) => events.find((event) => event.type === type)?.text ?? null;
    const tools = events.filter((event) => event.type === "tool");
    const isCompleted = exitCode === 0 && events.some((event) => event.type === "final");
    const lastWords = stderr.trim().split("\n").at(-1) || `exit code ${exitCode}`;
    return {
      status: isCompleted ? "completed" : "failed",
      finalText: textOf("final"),
      errorText: isCompleted ? null : (textOf("error") ?? lastWords),
      toolCalls: tools.length,
      toolErrors: tools.filter((event) => event.isError).length,
      nativeSessionId: null,
    };
  },
});

/** A killed agent may leave half a line. */
function parse(line) {
  try {
    return [JSON.parse(line)];
  } catch {
    return [];
  }
}
