import { expect, it } from "vitest";
import { intervalText } from "./interval-text.js";

it("shows no bootstrap interval over fewer than five tasks, and any other", () => {
  const format = (value: number): string => value.toFixed(1);
  expect(intervalText({ low: 1, high: 1 }, 4, format)).toBe("-");
  expect(intervalText({ low: 0, high: 1 }, 5, format)).toBe("0.0 to 1.0");
  expect(intervalText({ low: 0.2, high: 1, method: "wilson" }, 1, format)).toBe("0.2 to 1.0");
});
