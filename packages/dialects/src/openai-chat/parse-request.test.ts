import { readFileSync } from "node:fs";
import { GimbalError } from "@gimbal-rl/core";
import { describe, expect, test } from "vitest";
import { openAiChat } from "./openai-chat.js";

const minimal = { model: "m", messages: [{ role: "user", content: "hi" }] };

function parse(body: unknown): ReturnType<typeof openAiChat.parseRequest> {
  return openAiChat.parseRequest(typeof body === "string" ? body : JSON.stringify(body));
}

function failure(body: unknown): string {
  try {
    parse(body);
  } catch (error) {
    if (GimbalError.is(error)) return `${error.code} ${error.details.field}: ${error.message}`;
    throw error;
  }
  return "accepted";
}

describe("names that every object inherits", () => {
  const inherited = Object.getOwnPropertyNames(Object.prototype);

  test.each(inherited)("%s is no role, no part type and no tool choice", (name) => {
    expect(failure({ ...minimal, messages: [{ role: name, content: "hi" }] })).toMatch(
      /^invalid-request messages\[0\]\.role: /,
    );
    expect(failure({ ...minimal, tool_choice: name })).toMatch(/^invalid-request tool_choice: /);
    const content = [{ type: name, [name]: "hi" }];
    const request = parse({ ...minimal, messages: [{ role: "user", content }] });
    expect(request.ignoredFields).toContain(`messages[].content[] (type ${name})`);
    expect(request.conversation.messages[0]?.parts).toEqual([]);
  });

  test.each(inherited)("%s as a field is ignored and recorded", (name) => {
    const text = `{"model":"m",${JSON.stringify(name)}:1,"messages":[{"role":"user","content":"hi"}]}`;
    expect(parse(text).ignoredFields).toEqual([name]);
  });

  test.each(inherited)("%s as a code of an error stays that code", (name) => {
    const { body } = openAiChat.writeError({ status: 500, code: name, message: "x" });
    expect(JSON.parse(body).error.code).toBe(name);
  });
});

describe("requests", () => {
  test("a request recorded from Pi is read whole", () => {
    const file = new URL("../../../../fixtures/dialects/pi-0.74.2-chat.1.json", import.meta.url);
    const request = openAiChat.parseRequest(readFileSync(file, "utf8"));
    expect(request).toMatchObject({
      model: "fake-model",
      stream: true,
      includeUsage: true,
      toolChoice: "auto",
      sampling: { maxTokens: 16384 },
      ignoredFields: ["store", "reasoning_effort"],
    });
    const [first, second, third, fourth] = request.conversation.messages;
    expect(first).toMatchObject({ role: "system", wireRole: "developer" });
    expect(second).toEqual({
      role: "user",
      parts: [{ type: "text", text: "Write hello to out.txt using bash" }],
    });
    expect(third).toEqual({
      role: "assistant",
      parts: [
        { type: "reasoning", text: "thinking about it" },
        { type: "text", text: "Doing it" },
        {
          type: "tool-call",
          toolCallId: "call_7f8839dc0ba59359",
          name: "bash",
          argumentsText: '{"command":"echo hello > out.txt","description":"write file"}',
        },
      ],
    });
    expect(fourth).toEqual({
      role: "tool",
      toolCallId: "call_7f8839dc0ba59359",
      parts: [{ type: "text", text: "(no output)" }],
    });
    expect(request.conversation.tools.map(({ name }) => name)).toEqual([
      "read",
      "bash",
      "edit",
      "write",
    ]);
  });

  test("tool definitions and schemas are slices of the body", () => {
    const definition =
      '{ "type":"function", "function":{"name":"f","parameters":{"10":1.0,"9":12345678901234567890}} }';
    const request = parse(
      `{"tools":[ ${definition} ],"model":"m","messages":[{"role":"user","content":"x"}]}`,
    );
    expect(request.conversation.tools).toEqual([
      { name: "f", schemaText: '{"10":1.0,"9":12345678901234567890}', definitionText: definition },
    ]);
  });

  test("argument text arrives as it was sent, as a string or as an object", () => {
    const raw = '{"a": 1.0, "9": 2, "1": 12345678901234567890}';
    const call = (args: string): string =>
      `{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${args}}}]}]}`;
    for (const args of [JSON.stringify(raw), raw]) {
      expect(parse(call(args)).conversation.messages[0]?.parts).toEqual([
        { type: "tool-call", toolCallId: "c", name: "f", argumentsText: raw },
      ]);
    }
  });

  test("a string, one text part and null or empty content are read alike", () => {
    const contents = [
      "x",
      [{ type: "text", text: "x" }],
      [{ type: "text", text: "x", cache_control: { type: "ephemeral" } }],
    ];
    for (const content of contents) {
      expect(
        parse({ ...minimal, messages: [{ role: "user", content }] }).conversation.messages,
      ).toEqual([{ role: "user", parts: [{ type: "text", text: "x" }] }]);
    }
    for (const content of [null, "", undefined, []]) {
      expect(
        parse({ ...minimal, messages: [{ role: "assistant", content }] }).conversation.messages[0]
          ?.parts,
      ).toEqual([]);
    }
  });

  test("tool results may be arrays, images pass as image parts", () => {
    const messages = [
      {
        role: "tool",
        tool_call_id: "c",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      {
        role: "user",
        content: [{ type: "image_url", image_url: { url: "data:x", detail: "low" } }],
      },
    ];
    expect(parse({ ...minimal, messages }).conversation.messages).toEqual([
      {
        role: "tool",
        toolCallId: "c",
        parts: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      { role: "user", parts: [{ type: "image", url: "data:x" }] },
    ]);
  });

  test("sampling wishes, stop, tool choice and limits are honoured", () => {
    const request = parse({
      ...minimal,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 5,
      seed: 7,
      max_tokens: 9,
      max_completion_tokens: 8,
      stop: ["a", "b"],
      n: 1,
      logit_bias: {},
      stream_options: null,
      tools: [{ type: "function", function: { name: "f" } }],
      tool_choice: { type: "function", function: { name: "f" } },
    });
    expect(request.sampling).toEqual({
      temperature: 0.5,
      topP: 0.9,
      topK: 5,
      seed: 7,
      maxTokens: 8,
    });
    expect(request).toMatchObject({
      stop: ["a", "b"],
      toolChoice: { name: "f" },
      stream: false,
      includeUsage: false,
    });
    expect(parse({ ...minimal, stop: "x", max_tokens: 9 })).toMatchObject({
      stop: ["x"],
      sampling: { maxTokens: 9 },
    });
  });

  test("unknown keys, parts and tools are ignored and named", () => {
    const request = parse({
      ...minimal,
      store: false,
      metadata: {},
      stream_options: { include_obfuscation: true },
      tools: [{ type: "web_search" }, { type: "function", function: { name: "f", strict: true } }],
      messages: [
        { role: "user", name: "u", content: [{ type: "text", text: "x" }, { type: "hologram" }] },
      ],
    });
    expect(request.ignoredFields).toEqual([
      "store",
      "metadata",
      "stream_options.include_obfuscation",
      "tools[] (type web_search)",
      "tools[].function.strict",
      "messages[].name",
      "messages[].content[] (type hologram)",
    ]);
    expect(request.conversation.tools).toHaveLength(1);
  });

  test.each([
    [{ n: 2 }, /^request-field-refused n: /],
    [{ logit_bias: { "1": 2 } }, /^request-field-refused logit_bias: /],
    [
      {
        response_format: {
          type: "json_schema",
          json_schema: { name: "x", strict: true, schema: {} },
        },
      },
      /^request-field-refused response_format: /,
    ],
    [{ modalities: ["text", "audio"] }, /^request-field-refused modalities: /],
    [{ functions: [] }, /^request-field-refused functions: /],
    [
      { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
      /^request-field-refused messages\[0\]\.content\[0\]: /,
    ],
    [
      { messages: [{ role: "system", content: [{ type: "image_url", image_url: "x" }] }] },
      /^request-field-refused messages\[0\]\.content: /,
    ],
    [{ messages: [] }, /^invalid-request messages: /],
    [{ messages: [{ role: "wizard", content: "x" }] }, /^invalid-request messages\[0\]\.role: /],
    [
      { messages: [{ role: "tool", content: "x" }] },
      /^invalid-request messages\[0\]\.tool_call_id: /,
    ],
    [
      { messages: [{ role: "user", content: 5 }] },
      /^invalid-request messages\[0\]\.content: .*found 5/,
    ],
    [
      { temperature: "hot" },
      /^invalid-request temperature: .*found "hot", expected a number from 0 to 2/,
    ],
    [
      { max_tokens: 0 },
      /^invalid-request max_tokens: .*found 0, expected an integer of at least 1/,
    ],
    [{ stream: "yes" }, /^invalid-request stream: /],
    [
      { tool_choice: { type: "function", function: { name: "nope" } } },
      /^invalid-request tool_choice\.function\.name: /,
    ],
    [{ model: undefined }, /^invalid-request model: /],
  ])("%j is refused by name", (fields, expected) => {
    expect(failure({ ...minimal, ...fields })).toMatch(expected);
  });

  test("a body that is no JSON object is a 400 with the position", () => {
    expect(failure('{"model": ')).toMatch(
      /^invalid-request undefined: Invalid JSON at position 10/,
    );
    expect(failure("[]")).toMatch(/^invalid-request body: .*found an array/);
  });

  test("a strict flag that is false, or a format without schema, is not refused", () => {
    expect(failure({ ...minimal, response_format: { type: "text" } })).toBe("accepted");
    expect(
      failure({
        ...minimal,
        response_format: { type: "json_schema", json_schema: { name: "x", strict: false } },
      }),
    ).toBe("accepted");
  });
});
