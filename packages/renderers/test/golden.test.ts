/**
 * Golden tests against the Python stack (fixtures/renderers/make_goldens.py), on the real Qwen3 tokenizer and template.
 */
import { readFileSync } from "node:fs";
import { parseJsonText } from "@gimbal-rl/core";
import { beforeAll, describe, expect, test } from "vitest";
import { loadRenderer } from "../src/chat-renderer.js";
import type { Renderer } from "../src/renderer.js";
import { compileTemplate } from "../src/template.js";
import {
  arrayValue,
  jsonToValue,
  objectValue,
  type TemplateValue,
} from "../src/template-values.js";
import { loadQwen3, wireConversation } from "./support.js";
import { tinySource } from "./tiny.js";

beforeAll(() => {
  loadQwen3();
  loadQwen3({ enable_thinking: false });
}, 60_000);

const fixture = <T>(name: string): T =>
  JSON.parse(
    readFileSync(new URL(`../../../fixtures/renderers/${name}`, import.meta.url), "utf8"),
  ) as T;
const same = (text: string): string => text;

describe("against Python", () => {
  const { cases: encodings } = fixture<{ cases: { text: string; special: number[] }[] }>(
    "qwen3-encode.json",
  );

  test("text becomes the ids of the Rust tokenizer, added tokens included", () => {
    const { tokenizer } = loadQwen3();
    for (const { text, special } of encodings) {
      expect(tokenizer.encode(text, { allowSpecial: true }), JSON.stringify(text)).toEqual(special);
    }
    expect(encodings.length).toBeGreaterThan(70);
  });

  test("decoding gives back the NFC text, whole and id by id", () => {
    const { tokenizer } = loadQwen3();
    for (const { text, special } of encodings) {
      const expected = text.normalize("NFC");
      expect(tokenizer.decode(special)).toBe(expected);
      const decoder = tokenizer.createIncrementalDecoder();
      const pieces = special.map((id) => decoder.push(id));
      expect(pieces.join("") + decoder.end()).toBe(expected);
      for (const piece of pieces) expect(piece.includes("\uFFFD")).toBe(false);
    }
  });

  test("a byte-fallback tokenizer agrees too, whole and id by id", () => {
    const { cases } = fixture<{ cases: { text: string; ids: number[]; decoded: string }[] }>(
      "tiny-llama-encode.json",
    );
    const { tokenizer } = loadRenderer(tinySource("llama"));
    for (const { text, ids } of cases) {
      expect(tokenizer.encode(text, { allowSpecial: true }), JSON.stringify(text)).toEqual(ids);
      if (ids.some((id) => id < 5)) continue;
      const long = Array.from({ length: 20 }, () => ids).flat();
      expect(tokenizer.decode(long).replaceAll(" ", "")).toBe(text.repeat(20).replaceAll(" ", ""));
    }
  });

  const { cases: chats } = fixture<{
    cases: {
      messages: Record<string, unknown>[];
      tools: string[];
      options: Record<string, unknown>;
      text: string;
      ids: number[];
    }[];
  }>("qwen3-chat.json");

  test.each(chats.map((chat, index) => [index, chat] as const))(
    "conversation %i becomes the text and ids of apply_chat_template",
    (_index, chat) => {
      const renderer: Renderer = loadQwen3(chat.options);
      const rendered = renderer.render(wireConversation(chat.messages, chat.tools));
      // The text is compared as decoded ids: NFC is part of encoding.
      expect(renderer.tokenizer.decode(rendered.ids)).toBe(chat.text.normalize("NFC"));
      const injected = /<tool_response>\n.*<\/tool_response>$/s.test(
        String(chat.messages[0]?.content),
      );
      const thinking = chat.messages.some((message) => String(message.content).includes("<think>"));
      if (injected) expect(rendered.ids).not.toEqual(chat.ids);
      else
        expect(rendered.ids, thinking ? "assistant text with a think block" : "").toEqual(chat.ids);
      let at = 0;
      for (const span of rendered.spans) {
        expect(span.start).toBe(at);
        expect(span.end).toBeGreaterThan(span.start);
        at = span.end;
      }
      expect(at).toBe(rendered.ids.length);
    },
  );

  const tojson = fixture<{ templates: string[]; cases: { text: string; outputs: string[] }[] }>(
    "tojson.json",
  );

  test.each(tojson.templates.map((template, index) => [template, index] as const))(
    "%s prints JSON byte for byte as Python",
    (source, index) => {
      const template = compileTemplate(source);
      for (const { text, outputs } of tojson.cases) {
        const message = objectValue([["v", jsonToValue(parseJsonText(text), same)]]);
        const variables = new Map<string, TemplateValue>([["messages", arrayValue([message])]]);
        expect(template.render(variables), text).toBe(outputs[index]);
      }
    },
  );

  const snippets = fixture<{
    messages: Record<string, string>[];
    cases: { template: string; output: string }[];
  }>("snippets.json");

  test.each(snippets.cases)("$template renders as in Python", ({ template, output }) => {
    const value = jsonToValue(parseJsonText(JSON.stringify(snippets.messages)), same);
    expect(compileTemplate(template).render(new Map([["messages", value]]))).toBe(output);
  });
});
