import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type TurnFormat, type TurnPiece, TurnTextParser } from "./turn-text-parser.js";

const full: TurnFormat = { startsInReasoning: false, reasoning: true, toolCalls: true };

interface Outcome {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: { name: string; argumentsText: string }[];
  readonly malformed: boolean;
  /** Kinds in order, equal neighbours merged. */
  readonly order: string[];
}

function summarise(pieces: readonly TurnPiece[], malformed: boolean): Outcome {
  let text = "";
  let reasoning = "";
  const calls: Outcome["calls"] = [];
  const order: string[] = [];
  for (const piece of pieces) {
    if (piece.type === "text-delta") text += piece.text;
    else if (piece.type === "reasoning-delta") reasoning += piece.text;
    else calls.push(piece.call);
    if (piece.type === "tool-call" || order.at(-1) !== piece.type) order.push(piece.type);
  }
  return { text, reasoning, calls, malformed, order };
}

function parse(chunks: readonly string[], format: TurnFormat = full): Outcome {
  const parser = new TurnTextParser(format);
  const pieces = chunks.flatMap((chunk) => parser.push(chunk));
  pieces.push(...parser.end());
  return summarise(pieces, parser.malformed);
}

const call = (name: string, args: string): string =>
  `<tool_call>\n{"name": "${name}", "arguments": ${args}}\n</tool_call>`;

describe("one turn", () => {
  test("reasoning, text and calls come apart, and separating whitespace is dropped", () => {
    const turn = `<think>\nI should look.\n</think>\n\nLooking.\n${call("ls", '{"path": "."}')}\n${call("cat", "{}")}`;
    expect(parse([turn])).toEqual({
      reasoning: "I should look.",
      text: "Looking.",
      calls: [
        { name: "ls", argumentsText: '{"path": "."}' },
        { name: "cat", argumentsText: "{}" },
      ],
      malformed: false,
      order: ["reasoning-delta", "text-delta", "tool-call", "tool-call"],
    });
  });

  test("argument text is the slice as sampled", () => {
    const args = '{"a":1.0,  "9":1,"1":12345678901234567890, "t":"\\u00e9\\/"}';
    expect(parse([call("f", args)]).calls[0]?.argumentsText).toBe(args);
  });

  test("a closing tag inside a string belongs to the string", () => {
    const args = '{"text": "</tool_call> and <tool_call>{}</tool_call> \\" done"}';
    const outcome = parse([call("write", args)]);
    expect(outcome.calls).toEqual([{ name: "write", argumentsText: args }]);
    expect(outcome.text).toBe("");
  });

  test.each([
    ["broken JSON", '<tool_call>\n{"name": "f", "arguments": {"a": }}\n</tool_call>'],
    ["arguments that are a string", '<tool_call>{"name": "f", "arguments": "{}"}</tool_call>'],
    ["no arguments", '<tool_call>{"name": "f"}</tool_call>'],
    ["a name that is no string", '<tool_call>{"name": 1, "arguments": {}}</tool_call>'],
    ["two names", '<tool_call>{"name": "a", "name": "b", "arguments": {}}</tool_call>'],
    [
      "a raw newline in a string",
      '<tool_call>{"name": "f", "arguments": {"a": "x\ny"}}</tool_call>',
    ],
    ["a list", "<tool_call>[]</tool_call>"],
    ["nothing", "<tool_call></tool_call>"],
    ["a cut call", '<tool_call>\n{"name": "f", "arguments": {"command": "rm -rf '],
    ["a call without its closing tag", '<tool_call>\n{"name": "f", "arguments": {}}'],
    [
      "an unclosed string that hides a call",
      `<tool_call>{"name": "a</tool_call>${call("b", "{}")}`,
    ],
  ])("%s leaves as text, verbatim, and is malformed", (_name, raw) => {
    const outcome = parse([`Hi.\n${raw}`]);
    expect(outcome).toMatchObject({ text: `Hi.\n${raw}`, calls: [], malformed: true });
  });

  test("a valid call beside a malformed one is kept", () => {
    const outcome = parse([`${call("a", "{}")}\n<tool_call>{</tool_call>\n${call("b", "{}")}`]);
    expect(outcome.calls.map(({ name }) => name)).toEqual(["a", "b"]);
    expect(outcome).toMatchObject({ text: "<tool_call>{</tool_call>", malformed: true });
  });

  test("a call inside reasoning is reasoning", () => {
    const outcome = parse([`<think>\n${call("a", "{}")}\n</think>\n\nDone.`]);
    expect(outcome).toMatchObject({ calls: [], reasoning: call("a", "{}"), text: "Done." });
    expect(outcome.malformed).toBe(false);
  });

  test("reasoning that never closes stays reasoning", () => {
    expect(parse(["<think>\nhm"])).toMatchObject({ reasoning: "hm", text: "" });
  });

  test("a prompt that opened the think block makes the turn start in reasoning", () => {
    const outcome = parse(["\nhm\n</think>\n\nyes"], { ...full, startsInReasoning: true });
    expect(outcome).toMatchObject({ reasoning: "hm", text: "yes" });
  });

  test("without tools on offer a call is text and not malformed", () => {
    const raw = call("a", "{}");
    expect(parse([raw], { ...full, toolCalls: false })).toMatchObject({
      text: raw,
      malformed: false,
    });
  });

  test("a think tag after text is text", () => {
    expect(parse(["The tag <think> opens it."]).text).toBe("The tag <think> opens it.");
  });

  test("text leaves at once, except what may be a tag or separating whitespace", () => {
    const parser = new TurnTextParser(full);
    expect(parser.push("Hello ")).toEqual([{ type: "text-delta", text: "Hello" }]);
    expect(parser.push("you <to")).toEqual([{ type: "text-delta", text: " you" }]);
    expect(parser.push("ol")).toEqual([]);
    expect(parser.push("s>")).toEqual([{ type: "text-delta", text: " <tools>" }]);
  });
});

const fragment = fc.oneof(
  fc.constantFrom(
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "\n",
    " ",
    "<",
    "<tool",
    '"',
    "\\",
    "{",
    "}",
    '{"name": "f", "arguments": {"a": 1}}',
    '{"name": "f", "arguments": {"t": "</tool_call>"}}',
    call("g", "{}"),
  ),
  fc.string({ unit: "grapheme", maxLength: 6 }),
);
const turnText = fc.array(fragment, { maxLength: 12 }).map((parts) => parts.join(""));
const formats = fc.record({
  startsInReasoning: fc.boolean(),
  reasoning: fc.constant(true),
  toolCalls: fc.boolean(),
});

describe("laws", () => {
  test("any split gives the same turn", () => {
    fc.assert(
      fc.property(turnText, formats, fc.infiniteStream(fc.nat(5)), (text, format, cuts) => {
        const chunks: string[] = [];
        for (let at = 0; at < text.length; ) {
          const length = 1 + (cuts.next().value ?? 0);
          chunks.push(text.slice(at, at + length));
          at += length;
        }
        expect(parse(chunks, format)).toEqual(parse([text], format));
      }),
      { numRuns: 2000 },
    );
  });

  test("nothing but tags and separating whitespace is lost, and every call was sampled", () => {
    const squeeze = (text: string): string =>
      text.replaceAll(/<\/?think>|<\/?tool_call>/g, "").replaceAll(/\s/g, "");
    fc.assert(
      fc.property(turnText, (text) => {
        const outcome = parse([text]);
        for (const { argumentsText } of outcome.calls) expect(text).toContain(argumentsText);
        if (outcome.calls.length > 0) return;
        expect(squeeze(outcome.reasoning + outcome.text)).toBe(squeeze(text));
      }),
      { numRuns: 1000 },
    );
  });
});
