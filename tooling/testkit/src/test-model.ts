/**
 * The smallest complete model folder: a byte-level tokenizer without merges and a Qwen-style chat template, as texts.
 *
 * One id per UTF-8 byte plus the special tokens, so that ids can be read off by eye. `loadRenderer` takes it as it is.
 */

/** Special tokens in Qwen's spelling; ids follow the 256 bytes. */
export const testSpecialTokens: readonly string[] = [
  "<|endoftext|>",
  "<|im_start|>",
  "<|im_end|>",
  "<tool_call>",
  "</tool_call>",
  "<think>",
  "</think>",
];

const template = `{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{%- endif %}
    {{- '# Tools\\n\\n<tools>' }}
    {%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{%- endfor %}
    {{- '\\n</tools><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'user' or (message.role == 'system' and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' }}
        {%- if message.reasoning_content %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
        {%- if message.content %}{{- message.content }}{%- endif %}
        {%- if message.tool_calls %}{%- for tool_call in message.tool_calls %}
            {%- if not loop.first or message.content %}{{- '\\n' }}{%- endif %}
            {{- '<tool_call>\\n{"name": "' + tool_call.function.name + '", "arguments": ' }}
            {%- if tool_call.function.arguments is string %}{{- tool_call.function.arguments }}
            {%- else %}{{- tool_call.function.arguments | tojson }}{%- endif %}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}{%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}`;

/** GPT-2's printable stand-in for each byte. */
function byteAlphabet(): string[] {
  const isPlain = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    if (isPlain(byte)) return String.fromCharCode(byte);
    next += 1;
    return String.fromCharCode(next - 1);
  });
}

/** The texts of the folder. */
export interface TestModelTexts {
  readonly tokenizerJson: string;
  readonly tokenizerConfigJson: string;
}

/** Makes the texts of the test model folder. */
export function createTestModelTexts(): TestModelTexts {
  const vocabulary = Object.fromEntries(byteAlphabet().map((symbol, byte) => [symbol, byte]));
  const addedTokens = testSpecialTokens.map((content, i) => ({
    id: 256 + i,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: i < 3,
  }));
  const byteLevel = {
    type: "ByteLevel",
    add_prefix_space: false,
    trim_offsets: false,
    use_regex: false,
  };
  return {
    tokenizerJson: JSON.stringify({
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: addedTokens,
      normalizer: null,
      pre_tokenizer: byteLevel,
      post_processor: byteLevel,
      decoder: byteLevel,
      model: {
        type: "BPE",
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: "",
        end_of_word_suffix: "",
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: false,
        vocab: vocabulary,
        merges: [],
      },
    }),
    tokenizerConfigJson: JSON.stringify({
      tokenizer_class: "Qwen2Tokenizer",
      add_prefix_space: false,
      clean_up_tokenization_spaces: false,
      eos_token: "<|im_end|>",
      pad_token: "<|endoftext|>",
      model_max_length: 8192,
      chat_template: template,
    }),
  };
}
