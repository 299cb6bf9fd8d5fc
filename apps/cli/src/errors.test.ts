import { GimbalError } from "@gimbal-rl/core";
import { expect, test } from "vitest";
import { describeFailure, usageError } from "./errors.js";

test("messages become one line; usage errors exit 2, others 1", () => {
  expect(describeFailure(new GimbalError("model-invalid", "Bad.\n  Do this."), null)).toEqual({
    exitCode: 1,
    message: "Bad. Do this.",
  });
  expect(describeFailure(usageError("No."), null)).toEqual({ exitCode: 2, message: "No." });
});

test("errors of the operating system say what to do", () => {
  const error = Object.assign(new Error("ENOSPC: no space left on device, write"), {
    code: "ENOSPC",
  });
  expect(describeFailure(error, null)).toEqual({
    exitCode: 1,
    message:
      "ENOSPC: no space left on device, write. The disk is full. Free some space and try again.",
  });
});

test("a stop that the user asked for has the signal's code; other failures keep theirs", () => {
  const aborted = new GimbalError("aborted", "stopped.");
  expect(describeFailure(aborted, 130)).toEqual({ exitCode: 130, message: "stopped." });
  const domAbort = new DOMException("This operation was aborted", "AbortError");
  expect(describeFailure(domAbort, 143)).toEqual({ exitCode: 143, message: "stopped." });
  expect(describeFailure(aborted, null).exitCode).toBe(1);
  expect(describeFailure(new GimbalError("store-corrupt", "Bad."), 130).exitCode).toBe(1);
});

test("anything may be thrown", () => {
  for (const thrown of ["text", undefined, null, 7, { code: 3 }]) {
    const { exitCode, message } = describeFailure(thrown, null);
    expect(exitCode).toBe(1);
    expect(message).toMatch(/^unexpected error: .*GIMBAL_DEBUG=1/);
  }
});
