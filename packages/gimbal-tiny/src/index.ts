/**
 * Where the tiny policy lies: a Hugging Face model folder that ships with this package.
 */
import { fileURLToPath } from "node:url";

/** The model folder: config.json, model.safetensors, tokenizer.json, tokenizer_config.json, chat_template.jinja. */
export const tinyModelDir: string = fileURLToPath(new URL("../model", import.meta.url));

/** The one harness version that the policy was made with; another one shows it prompts it has never seen. */
export const tinyHarness: { readonly id: "pi"; readonly version: "1.6.0" } = {
  id: "pi",
  version: "1.6.0",
};
