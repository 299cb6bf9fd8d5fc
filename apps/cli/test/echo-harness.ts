/** A harness of one's own, as `--harness <module>` loads it: asks once and ends. */
import type { Harness } from "@gimbal-rl/core";
import { defineHarness } from "@gimbal-rl/harness";

const agent = `
const answer = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
  method: "POST",
  headers: { authorization: "Bearer " + process.env.OPENAI_API_KEY },
  body: JSON.stringify({
    model: process.env.GIMBAL_MODEL,
    max_tokens: 4,
    messages: [{ role: "user", content: process.env.GIMBAL_INSTRUCTION }],
  }),
});
await answer.json();
console.log("done");
`;

const harness: Harness = defineHarness({
  id: "echo",
  command: () => ({ argv: [process.execPath, "--input-type=module", "-e", agent] }),
});
export default harness;
