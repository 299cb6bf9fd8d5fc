import type { Conversation } from "@gimbal-rl/core";
import { stabiliseConversation } from "@gimbal-rl/proxy";
import { describe, expect, it } from "vitest";
import { stablePathRules } from "./stable-paths.js";

const rules = stablePathRules("/tmp/", "/home/u/.cache/gimbal");

function stable(text: string): string {
  const conversation: Conversation = {
    messages: [{ role: "user", parts: [{ type: "text", text }] }],
    tools: [],
  };
  const { conversation: after } = stabiliseConversation(conversation, rules);
  const part = after.messages[0]?.parts[0];
  return part?.type === "text" ? part.text : "";
}

describe("stablePathRules", () => {
  it("maps the folders of any instance and the install to the paths of level namespace", () => {
    expect(stable("in /tmp/gimbal-a1B2c3/workspace/src/a.js")).toBe("in /workspace/src/a.js");
    expect(stable("in /tmp/gimbal-zzzzzz/workspace.")).toBe("in /workspace.");
    expect(stable("at /tmp/gimbal-a1B2c3/home/.pi")).toBe("at /home/agent/.pi");
    expect(stable("read /home/u/.cache/gimbal/harness/pi-1.6.0/docs/a.md")).toBe(
      "read /opt/pi/docs/a.md",
    );
  });

  it("replaces every occurrence, and gives the prompts of two attempts the same text", () => {
    const prompt = (instance: string): string =>
      `cwd /tmp/${instance}/workspace, file /tmp/${instance}/workspace/a, home /tmp/${instance}/home`;
    expect(stable(prompt("gimbal-aaaaaa"))).toBe(stable(prompt("gimbal-B-9_xy")));
  });

  it("leaves other paths alone", () => {
    for (const text of [
      "/tmp/gimbal-a1B2c3/workspaces/a",
      "/tmp/gimbal-a1B2c3/homework",
      "/tmp/other/workspace",
      "/tmpXgimbal-a1B2c3/workspace",
      "/home/uX.cache/gimbal/harness/pi-1.6.0",
    ]) {
      expect(stable(text)).toBe(text);
    }
  });
});
