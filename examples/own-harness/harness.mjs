/**
 * The agent of `agent.mjs` as a harness for Gimbal: how it is started, and how its output is read.
 *
 * At level `namespace` the agent sees nothing of this machine but what is mounted here, at paths that are the same
 * everywhere; at level `process` it runs in place.
 */
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { defineHarness } from "@gimbal-rl/harness";

const agent = fileURLToPath(new URL("agent.mjs", import.meta.url));
/** The SDK needs no other package, so that one folder is all there is to mount. */
const openai = dirname(fileURLToPath(import.meta.resolve("openai")));
const inside = "/opt/own-harness";

export default defineHarness({
  id: "own-harness",
  version: "1",
  prepare: async () => {
    if (!existsSync(openai)) throw new Error(`The openai package is missing; looked in ${openai}.`);
  },
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
  readOutcome: ({ exitCode, stderr, stdout }) => {
    const events = stdout.split("\n").flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        return [];
      }
    });
    const results = events.filter((event) => event?.type === "tool");
    const final = events.find((event) => event?.type === "final");
    const completed = exitCode === 0 && final !== undefined;
    return {
      status: completed ? "completed" : "failed",
      finalText: final?.text ?? null,
      errorText: completed ? null : stderr.trim().split("\n").at(-1) || `exit code ${exitCode}`,
      toolCalls: results.length,
      toolErrors: results.filter(({ result }) => result.startsWith("Error: ")).length,
      nativeSessionId: null,
    };
  },
});
