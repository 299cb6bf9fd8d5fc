import { createMemoryStore } from "@gimbal-rl/store";
import { expect, test } from "vitest";
import { assertSameSettings } from "./suite-settings.js";

const settings = { weights: "aa", harness: "pi 1.6.0", seed: 1, temperature: 1 };

test("the same settings may come again, others are refused by name, another label is its own", async () => {
  const store = createMemoryStore();
  await assertSameSettings(store, "eval", "/runs/x", settings);
  await assertSameSettings(store, "eval", "/runs/x", { ...settings });
  const changed = { ...settings, weights: "bb", temperature: 0.5 };
  await expect(assertSameSettings(store, "eval", "/runs/x", changed)).rejects.toMatchObject({
    code: "config-invalid",
    message: expect.stringContaining("weights aa, now bb; temperature 1, now 0.5"),
  });
  await assertSameSettings(store, "rollout", "/runs/x", changed);
});
