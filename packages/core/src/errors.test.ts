import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { attributeError, GimbalError, isRetryable, throwIfAborted } from "./errors.js";

const caught = async (work: () => unknown): Promise<unknown> => {
  try {
    return await work();
  } catch (error) {
    return error;
  }
};

describe("attributeError", () => {
  it("calls a stopped wait aborted, whatever it waited for", async () => {
    const stop = new AbortController();
    stop.abort();
    const wait = await caught(() => sleep(1000, undefined, { signal: stop.signal }));
    expect(attributeError(wait, "harness-missing", "harness", "Cannot write")).toMatchObject({
      code: "aborted",
      cause: wait,
    });
    const thrown = await caught(() => stop.signal.throwIfAborted());
    expect(attributeError(thrown, "sandbox-failed", "sandbox", "x").code).toBe("aborted");
  });

  it("keeps the caller's own reason", async () => {
    const reason = new GimbalError("aborted", "Ctrl-C.");
    const stop = new AbortController();
    stop.abort(reason);
    const wait = await caught(() => sleep(1000, undefined, { signal: stop.signal }));
    expect(attributeError(wait, "harness-missing", "harness", "Cannot write")).toBe(reason);
  });

  it("gives everything else the code asked for", () => {
    const error = attributeError(new Error("disk full"), "sandbox-failed", "sandbox", "Cannot");
    expect([error.code, error.message]).toEqual(["sandbox-failed", "Cannot: disk full"]);
  });
});

describe("throwIfAborted", () => {
  it("throws aborted with the reason as cause, or the reason itself when it says aborted", async () => {
    expect(() => throwIfAborted(new AbortController().signal)).not.toThrow();
    const error = await caught(() => throwIfAborted(AbortSignal.abort("why")));
    expect(error).toMatchObject({ code: "aborted", cause: "why" });
    const reason = new GimbalError("aborted", "Ctrl-C.");
    expect(await caught(() => throwIfAborted(AbortSignal.abort(reason)))).toBe(reason);
  });
});

describe("isRetryable", () => {
  it("is false for what would fail the same way again", () => {
    const codes = [
      "config-invalid",
      "invalid-request",
      "harness-missing",
      "model-invalid",
    ] as const;
    for (const code of [...codes, "aborted"] as const) {
      expect(isRetryable(new GimbalError(code, "x")), code).toBe(false);
    }
    expect(isRetryable(new TypeError("x"))).toBe(false);
    expect(isRetryable(new GimbalError("sandbox-failed", "x"))).toBe(true);
  });
});
