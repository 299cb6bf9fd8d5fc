import { tinyModelDir } from "@gimbal-rl/gimbal-tiny";
import { expect, it } from "vitest";
import { modelNameOf } from "./model-name.js";

it.each([
  [tinyModelDir, "gimbal-tiny"],
  [`${tinyModelDir}/`, "gimbal-tiny"],
  ["/models/Qwen3-0.6B", "Qwen3-0.6B"],
  ["./Qwen3-0.6B/", "Qwen3-0.6B"],
  ["/other/model", "model"],
  ["/", "model"],
])("the model in %s is called %s", (modelDir, name) => {
  expect(modelNameOf(modelDir)).toBe(name);
});
