import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Conversation, GimbalError, type Message, type TurnEvent } from "@gimbal-rl/core";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { loadRenderer } from "../src/chat-renderer.js";
import { loadRendererFromFolder } from "../src/folder.js";
import { bash, loadQwen3, result, system, user } from "./support.js";
import { tinySource } from "./tiny.js";

beforeAll(() => {
  loadQwen3();
}, 60_000);

const special = [
  "<|im_end|>",
  "<|im_start|>",
  "<tool_call>",
  "</tool_response>",
  "<think>",
  "<|endoftext|>",
];
const anyText = fc
  .array(
    fc.oneof(
      fc.constantFrom(...special, "\n", " ", "\uFDD0", "\uFDD1", "\uFDD2", "\uFDD0\uFDD1"),
      fc.string({ unit: "binary", maxLength: 8 }),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(""));

async function codeOf(load: () => unknown): Promise<string> {
  try {
    await load();
  } catch (error) {
    if (GimbalError.is(error)) {
      expect(error.message).not.toContain("\n");
      return `${error.code}: ${error.message}`;
    }
    throw error;
  }
  return "no error";
}

describe("rendering", () => {
  test("no text of a user, system or tool message becomes an added token", () => {
    const renderer = loadQwen3();
    const added = special.map((token) => renderer.tokenizer.tokenToId(token));
    const count = (conversation: Conversation): number[] => {
      const { ids } = renderer.render(conversation);
      return added.map((id) => ids.filter((other) => other === id).length);
    };
    const build = (text: string): Conversation => ({
      messages: [
        system(`s${text}`),
        user(`u${text}`),
        {
          role: "assistant",
          parts: [{ type: "tool-call", toolCallId: "c", name: "bash", argumentsText: "{}" }],
        },
        result("c", `t${text}`),
      ],
      tools: [
        {
          ...bash,
          definitionText: JSON.stringify({
            type: "function",
            function: { name: `n${text}`, description: text },
          }),
        },
      ],
    });
    const plain = count(build(""));
    fc.assert(
      fc.property(anyText, (text) => {
        expect(count(build(text))).toEqual(plain);
      }),
      { numRuns: 100 },
    );
  });

  test("every character of a message arrives, private marks included", () => {
    const renderer = loadQwen3();
    fc.assert(
      fc.property(anyText, (text) => {
        const { ids } = renderer.render({ messages: [user(`<${text}>`)], tools: [] });
        expect(renderer.tokenizer.decode(ids)).toContain(
          `user\n<${text.normalize("NFC")}>`.normalize("NFC"),
        );
      }),
      { numRuns: 100 },
    );
  });

  test("assistant text cannot close its turn", () => {
    const renderer = loadQwen3();
    const { ids } = renderer.render({
      messages: [
        user("q"),
        { role: "assistant", parts: [{ type: "text", text: "a<|im_end|>b" }] },
        user("r"),
      ],
      tools: [],
    });
    expect(ids.filter((id) => id === renderer.tokenizer.tokenToId("<|im_end|>"))).toHaveLength(3);
  });

  test("spans say which message and part the ids came from", () => {
    const renderer = loadQwen3();
    const rendered = renderer.render({
      messages: [system("Be brief."), user("hällo 🎉")],
      tools: [bash],
    });
    const texts = rendered.spans.map((span) => ({
      message: span.messageIndex,
      part: span.part,
      text: renderer.tokenizer.decode(rendered.ids.slice(span.start, span.end)),
    }));
    expect(texts).toContainEqual({ message: 0, part: "content", text: "Be brief.\n\n" });
    expect(texts).toContainEqual({ message: 1, part: "content", text: "hällo 🎉" });
    expect(texts.at(-1)).toEqual({
      message: -1,
      part: "generation-prompt",
      text: "<|im_start|>assistant\n",
    });
    expect(texts.find(({ part }) => part === "tools")?.text).toContain('"name": "bash"');
  });

  test("an image is refused with the message it is in", async () => {
    const conversation: Conversation = {
      messages: [{ role: "user", parts: [{ type: "image", url: "data:," }] }],
      tools: [],
    };
    expect(await codeOf(() => loadQwen3().render(conversation))).toMatch(
      /^invalid-request: messages\[0\] holds an image/,
    );
  });
});

const newMessages = fc.oneof(
  fc.tuple(anyText).map(([text]): Message[] => [user(text)]),
  fc.tuple(anyText, anyText).map(([a, b]): Message[] => [result("c1", a), result("c2", b)]),
  fc.tuple(anyText, anyText).map(([a, b]): Message[] => [result("c1", a), user(b)]),
);

describe.each([
  ["Qwen3", () => loadQwen3()],
  ["a Llama-like template on a byte-fallback tokenizer", () => loadRenderer(tinySource("llama"))],
])("deltas of %s", (_name, load) => {
  test("prompt + turn + delta are the ids of the whole conversation", () => {
    const renderer = load();
    expect(renderer.deltaSupport).toMatchObject({ supported: true, reason: null });
    const eot = renderer.stopIds[0] ?? -1;
    fc.assert(
      fc.property(anyText, newMessages, (first, next) => {
        const calls = next.flatMap((message) =>
          message.role === "tool" ? [message.toolCallId] : [],
        );
        const turn: Message = {
          role: "assistant",
          parts:
            calls.length === 0
              ? [{ type: "text", text: "An answer." }]
              : calls.map((toolCallId) => ({
                  type: "tool-call",
                  toolCallId,
                  name: "bash",
                  argumentsText: '{"a": 1}',
                })),
        };
        const before = { messages: [system("s"), user(first)], tools: [bash] };
        const prompt = renderer.render(before).ids;
        const whole = renderer.render({
          ...before,
          messages: [...before.messages, turn, ...next],
        }).ids;
        expect(whole.slice(0, prompt.length)).toEqual(prompt);
        const end = whole.indexOf(eot, prompt.length);
        const sampled = whole.slice(prompt.length, end + 1);
        expect([...prompt, ...sampled, ...renderer.renderDelta(sampled, next)]).toEqual(whole);
        const cut = sampled.slice(0, -1);
        expect([...prompt, ...cut, ...renderer.renderDelta(cut, next)]).toEqual(whole);
      }),
      { numRuns: 60 },
    );
  });
});

describe("output parser", () => {
  test("the same ids in any split give the same events and turn, minted once per call", () => {
    const renderer = loadQwen3();
    const text =
      '<think>\nhm 🎉\n</think>\n\nLet me look.\n<tool_call>\n{"name": "bash", "arguments": {"c": "é🎉"}}\n</tool_call>';
    const variants = [
      renderer.tokenizer.encode(text, { allowSpecial: true }),
      renderer.tokenizer.encode(text),
    ];
    const run = (chunks: readonly number[][]) => {
      let minted = 0;
      const mint = (): string => {
        minted += 1;
        return `call_${minted}`;
      };
      const parser = renderer.createOutputParser({
        conversation: { messages: [], tools: [bash] },
        mintToolCallId: mint,
      });
      const events: TurnEvent[] = chunks.flatMap((ids) => parser.push(ids));
      const end = parser.end("stop");
      return { events: [...events, ...end.events], turn: end.turn, minted };
    };
    for (const ids of variants) {
      const sampled = [...ids, renderer.stopIds[0] ?? -1];
      const once = run([sampled]);
      expect(once.turn).toEqual({
        malformed: false,
        toolCalls: 1,
        message: {
          role: "assistant",
          parts: [
            { type: "reasoning", text: "hm 🎉" },
            { type: "text", text: "Let me look." },
            {
              type: "tool-call",
              toolCallId: "call_1",
              name: "bash",
              argumentsText: '{"c": "é🎉"}',
            },
          ],
        },
      });
      expect(once.minted).toBe(1);
      fc.assert(
        fc.property(fc.array(fc.nat(7), { minLength: 1 }), (sizes) => {
          const chunks: number[][] = [];
          for (let at = 0, i = 0; at < sampled.length; i += 1) {
            const size = 1 + (sizes[i % sizes.length] ?? 0);
            chunks.push(sampled.slice(at, at + size));
            at += size;
          }
          expect(run(chunks)).toEqual(once);
        }),
        { numRuns: 50 },
      );
    }
  });
});

describe("loading", () => {
  test("the fingerprint is the sha256 of the texts", () => {
    const { tokenizerJson, chatTemplate } = tinySource("llama");
    const hex = (text = ""): string => createHash("sha256").update(text).digest("hex");
    expect(loadRenderer(tinySource("llama")).fingerprint).toEqual({
      template: hex(chatTemplate),
      tokenizer: hex(tokenizerJson),
    });
  });

  test("a template that drops earlier reasoning says so", () => {
    expect(loadQwen3().deltaSupport.keepsHistory).toBe(false);
  });

  test.each([
    [
      "an unknown filter",
      "{% for m in messages %}{{ m.content | frobnicate }}{% endfor %}",
      /^template-unsupported: .*"frobnicate"/,
    ],
    [
      "broken syntax",
      "{% for m in messages %}",
      /^template-unsupported: The chat template cannot be parsed/,
    ],
    [
      "an unknown function",
      "{{ frobnicate(messages) }}",
      /^template-unsupported: The chat template cannot be rendered/,
    ],
  ])("%s is one line that names it", async (_name, chatTemplate, expected) => {
    expect(await codeOf(() => loadRenderer({ ...tinySource("llama"), chatTemplate }))).toMatch(
      expected,
    );
  });

  test("a template without an end-of-turn token loads and says why it cannot be continued", () => {
    const renderer = loadRenderer({
      ...tinySource("llama"),
      chatTemplate:
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",
    });
    expect(renderer.deltaSupport.supported).toBe(false);
    expect(renderer.stopIds).toEqual([2]);
    expect(() => renderer.renderDelta([1], [user("x")])).toThrow(
      /cannot be continued token by token/,
    );
  });

  test("a wrong folder and a broken tokenizer are one-line model errors", async () => {
    const dir = mkdtempSync(join(tmpdir(), "gimbal-renderers-"));
    try {
      expect(await codeOf(() => loadRendererFromFolder(join(dir, "nowhere")))).toMatch(
        /^model-invalid: .*has no tokenizer\.json/,
      );
      writeFileSync(join(dir, "tokenizer.json"), "{");
      expect(await codeOf(() => loadRendererFromFolder(dir))).toMatch(
        /^model-invalid: .*No chat template/,
      );
      writeFileSync(join(dir, "chat_template.jinja"), "{{ messages[0].content }}");
      expect(await codeOf(() => loadRendererFromFolder(dir))).toMatch(
        /^model-invalid: .*tokenizer\.json is not valid JSON/,
      );
      writeFileSync(join(dir, "tokenizer.json"), '{"model": {}}');
      expect(await codeOf(() => loadRendererFromFolder(dir))).toMatch(
        /^model-invalid: .*tokenizer\.json cannot be used/,
      );
    } finally {
      rmSync(dir, { recursive: true });
    }
  });
});
