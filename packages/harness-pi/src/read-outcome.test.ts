import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readPiOutcome } from "./read-outcome.js";

const read = (events: readonly unknown[], more: { stderr?: string; exitCode?: number } = {}) =>
  readPiOutcome({
    exitCode: more.exitCode ?? 0,
    stdout: events.map((event) => `${JSON.stringify(event)}\n`).join(""),
    stderr: more.stderr ?? "",
  });
const said = (stopReason: string, text: string, errorMessage?: string) => ({
  type: "message_end",
  message: {
    role: "assistant",
    content: text === "" ? [] : [{ type: "text", text }],
    stopReason,
    ...(errorMessage === undefined ? {} : { errorMessage }),
  },
});

describe("readPiOutcome", () => {
  it("reads a completed run with its tools and session id", () => {
    const outcome = read([
      { type: "session", id: "s1" },
      { type: "agent_start" },
      said("toolUse", "let me look"),
      { type: "tool_execution_end", isError: false },
      { type: "tool_execution_end", isError: true },
      said("stop", "done"),
      { type: "agent_end", willRetry: false },
      { type: "agent_settled" },
    ]);
    expect(outcome).toEqual({
      status: "completed",
      finalText: "done",
      errorText: null,
      toolCalls: 2,
      toolErrors: 1,
      nativeSessionId: "s1",
    });
  });

  it("fails on the last message's error, although the exit code is 0", () => {
    const outcome = read([
      said("stop", "hi"),
      said("error", "", "500 boom"),
      { type: "agent_end" },
    ]);
    expect(outcome).toMatchObject({ status: "failed", errorText: "500 boom", finalText: "hi" });
  });

  it("looks at the end of the last agent run when there was a retry", () => {
    const failing = [said("error", "", "503"), { type: "agent_end", willRetry: true }];
    expect(read(failing).status).toBe("failed");
    const retried = [
      ...failing,
      { type: "agent_start" },
      said("stop", "ok"),
      { type: "agent_end" },
    ];
    expect(read(retried)).toMatchObject({ status: "completed", finalText: "ok" });
    expect(read([...failing, { type: "agent_start" }, said("stop", "ok")]).status).toBe("failed");
  });

  it("fails without an end or an answer, with what stderr said", () => {
    expect(read([], { stderr: "a\nError: no model\n" }).errorText).toBe("a Error: no model");
    expect(read([{ type: "agent_end" }]).status).toBe("failed");
    expect(read([said("aborted", ""), { type: "agent_end" }]).errorText).toContain("aborted");
  });

  it("never throws, and completes nothing that has no agent_end", () => {
    const junk = fc.oneof(
      fc.string(),
      fc.json(),
      fc.constant('{"type":"message_end","message":null}'),
    );
    fc.assert(
      fc.property(fc.array(junk), fc.option(fc.integer()), (lines, exitCode) => {
        const stdout = lines.filter((line) => !line.includes("agent_end")).join("\n");
        expect(readPiOutcome({ exitCode, stdout, stderr: "" }).status).toBe("failed");
      }),
    );
  });
});
