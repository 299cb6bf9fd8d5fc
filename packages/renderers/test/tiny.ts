/** Small renderer sources for tests: a tokenizer that is not byte-level, with a Llama-like template. */
import { readFileSync } from "node:fs";
import type { RendererSource } from "../src/chat-renderer.js";

const llamaTemplate = `{{- bos_token }}
{%- if messages[0]['role'] == 'system' %}{{- messages[0]['content'] | trim + '\\n' }}{%- set loop_messages = messages[1:] %}{%- else %}{%- set loop_messages = messages %}{%- endif %}
{%- for m in loop_messages %}
{%- if m.role == 'assistant' %}{{- '[/INST]' + m.content }}{%- for c in m.tool_calls or [] %}{{- c.function | tojson }}{%- endfor %}{{- eos_token }}
{%- elif m.role == 'tool' %}{{- '[INST]result ' + m.content }}
{%- else %}{{- '[INST]' + m.content }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '[/INST]' }}{%- endif %}`;

/** The texts of a tiny model folder. */
export function tinySource(kind: "llama"): RendererSource {
  const file = `../../../fixtures/renderers/tiny-${kind}.tokenizer.json`;
  return {
    tokenizerJson: readFileSync(new URL(file, import.meta.url), "utf8"),
    tokenizerConfigJson: JSON.stringify({ bos_token: "<s>", eos_token: { content: "</s>" } }),
    chatTemplate: llamaTemplate,
  };
}
