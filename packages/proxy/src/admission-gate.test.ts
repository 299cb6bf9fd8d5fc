import { settle } from "@gimbal-rl/testkit";
import { describe, expect, it } from "vitest";
import { AdmissionGate } from "./admission-gate.js";

const never = new AbortController().signal;

describe("the admission gate", () => {
  it("pauses only when the last call has left, and holds new ones until it opens", async () => {
    const gate = new AdmissionGate();
    const leave = await gate.enter(never);
    const order: string[] = [];
    const paused = gate.pause().then(() => order.push("paused"));
    const entered = gate.enter(never).then((leaveLater) => {
      order.push("entered");
      return leaveLater;
    });
    await settle();
    expect(order).toEqual([]);
    leave();
    leave();
    await paused;
    await settle();
    expect(order).toEqual(["paused"]);
    gate.resume();
    (await entered)();
    expect(order).toEqual(["paused", "entered"]);
    expect(gate.running).toBe(0);
  });

  it("lets a waiting call go when it is aborted, and a waiting pause too", async () => {
    const gate = new AdmissionGate();
    const leave = await gate.enter(never);
    const stopPause = new AbortController();
    const pausing = gate.pause(stopPause.signal);
    const stopCall = new AbortController();
    const call = gate.enter(stopCall.signal);
    stopCall.abort();
    await expect(call).rejects.toMatchObject({ code: "aborted" });
    stopPause.abort();
    await expect(pausing).rejects.toMatchObject({ code: "aborted" });
    await expect(gate.pause(stopPause.signal)).rejects.toMatchObject({ code: "aborted" });
    const overtaken = gate.pause();
    gate.resume();
    await expect(overtaken).rejects.toMatchObject({ code: "aborted" });
    leave();
    await gate.pause();
    expect(gate.running).toBe(0);
  });
});
