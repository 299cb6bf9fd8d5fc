import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { carriesSecret, createCapabilityKey, readKeyedPath } from "./capability-key.js";

function request(url: string, headers: Record<string, string> = {}): IncomingMessage {
  return { url, headers } as unknown as IncomingMessage;
}

describe("a capability key", () => {
  it("holds at least 160 random bits and never repeats", () => {
    const keys = new Set(Array.from({ length: 100 }, () => createCapabilityKey()));
    expect(keys.size).toBe(100);
    for (const key of keys) {
      expect(key).toMatch(/^sk-gimbal-[A-Za-z0-9_-]+$/);
      expect((key.length - "sk-gimbal-".length) * 6).toBeGreaterThanOrEqual(160);
    }
  });

  it.each([
    ["/v1/x", { authorization: "Bearer sk-gimbal-a" }],
    ["/v1/x", { authorization: "bearer   sk-gimbal-a" }],
    ["/v1/x?b=1", { "x-api-key": "sk-gimbal-a" }],
    ["/v1/x", { "x-goog-api-key": "sk-gimbal-a" }],
    ["/v1/x?key=sk-gimbal-a&alt=sse", {}],
    ["/s/sk-gimbal-a/v1/x?alt=sse", {}],
    ["/s/sk-gimbal-a/v1/x", { authorization: "Bearer sk-gimbal-other" }],
    ["/v1/x", { authorization: "Bearer placeholder", "x-api-key": "sk-gimbal-a" }],
  ])("is found in %s with %o", (url, headers) => {
    expect(readKeyedPath(request(url, headers))).toEqual({ path: "/v1/x", key: "sk-gimbal-a" });
  });

  it("is never taken from a session header, the body or a cookie", () => {
    const headers = { "x-session-id": "sk-gimbal-a", cookie: "key=sk-gimbal-a", session_id: "x" };
    expect(readKeyedPath(request("/v1/x?session_id=sk-gimbal-a", headers)).key).toBeNull();
  });
});

describe("comparing secrets", () => {
  it("accepts only the same text, of any length", () => {
    const opens = (authorization: string, secret: string): boolean =>
      carriesSecret(request("/", { authorization }), secret);
    expect(opens("Bearer abc", "abc")).toBe(true);
    expect(opens("bearer  two words", "two words")).toBe(true);
    for (const wrong of ["Bearer abcd", "Bearer ab", "Bearer", "Bearer ", "", "abc", "Basic abc"]) {
      expect(opens(wrong, "abc")).toBe(false);
    }
  });

  it("lets nobody in when the secret is empty", () => {
    expect(carriesSecret(request("/"), "")).toBe(false);
    expect(carriesSecret(request("/", { authorization: "Bearer " }), "")).toBe(false);
  });
});
