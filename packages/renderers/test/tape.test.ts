import {
  type AssistantMessage,
  asId,
  type CallId,
  type Conversation,
  type Message,
} from "@gimbal-rl/core";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { loadRenderer } from "../src/chat-renderer.js";
import type { Renderer, Tape, TapePlan } from "../src/renderer.js";
import { createTape } from "../src/tape.js";
import { bash, loadQwen3, result, system, user } from "./support.js";
import { tinySource } from "./tiny.js";

beforeAll(() => {
  loadQwen3();
}, 60_000);

type Part = AssistantMessage["parts"][number];
const text = (value: string): Part => ({ type: "text", text: value });
const reasoning = (value: string): Part => ({ type: "reasoning", text: value });
const call = (toolCallId: string, argumentsText: string): Part => ({
  type: "tool-call",
  toolCallId,
  name: "bash",
  argumentsText,
});
const turn = (...parts: Part[]): AssistantMessage => ({ role: "assistant", parts });

/** A session that samples fixed ids, however odd. */
class Session {
  readonly tape: Tape;
  readonly renderer: Renderer;
  private calls = 0;
  constructor(renderer: Renderer = loadQwen3(), history: "keep" | "template" = "keep") {
    this.renderer = renderer;
    this.tape = createTape(renderer, { history });
  }
  call(
    messages: readonly Message[],
    message: AssistantMessage,
    sampledIds: readonly number[],
    tools = [bash],
  ) {
    const conversation: Conversation = { messages, tools };
    const plan = this.tape.plan(conversation);
    this.calls += 1;
    const callId = asId<CallId>(`call-${this.calls}`);
    this.tape.commit({ callId, conversation, plan, sampledIds, message });
    return { plan, callId, total: [...plan.promptIds, ...sampledIds] };
  }
  plan(messages: readonly Message[], tools = [bash]): TapePlan {
    return this.tape.plan({ messages, tools });
  }
}

const eot = (): number => loadQwen3().stopIds[0] ?? -1;
const start = [system("s"), user("q")];

describe("continuing", () => {
  test("a prompt is the previous prompt, the sampled ids as they were, and the delta", () => {
    const session = new Session();
    // Ids that no tokenizer would choose for their text: " Pantom" in two pieces must stay in two pieces.
    const sampled = [393, 518, 316, eot()];
    const first = session.call(start, turn(text(" Pantom")), sampled);
    expect(first.plan).toMatchObject({ parentCallId: null, reusedTokens: 0, forkReason: null });
    const plan = session.plan([...start, turn(text(" Pantom")), user("next")]);
    expect(plan.promptIds).toEqual([
      ...first.total,
      ...session.renderer.renderDelta(sampled, [user("next")]),
    ]);
    expect(plan).toMatchObject({
      parentCallId: first.callId,
      reusedTokens: first.total.length,
      rewritten: [],
      forkReason: null,
    });
  });

  test("a turn with calls is matched by minted ids whatever happened to its arguments, and the change is recorded", () => {
    const session = new Session();
    const first = session.call(
      start,
      turn(reasoning("hm"), text("Look."), call("c1", '{"a": 1.0}'), call("c2", "{}")),
      [11, 12, eot()],
    );
    const returned = turn(call("c1", '{"a":1}'), call("c2", "{}"));
    const plan = session.plan([...start, returned, result("c1", "x"), result("c2", "y")]);
    expect(plan.parentCallId).toBe(first.callId);
    expect(plan.rewritten).toEqual(["c1"]);
    expect(plan.promptIds.slice(0, first.total.length)).toEqual(first.total);
  });

  test("calls with other ids, or fewer of them, are another history", () => {
    const session = new Session();
    session.call(start, turn(call("c1", "{}"), call("c2", "{}")), [11, eot()]);
    for (const parts of [[call("c9", "{}"), call("c2", "{}")], [call("c1", "{}")]]) {
      const plan = session.plan([...start, turn(...parts), result("c1", "x")]);
      expect(plan.parentCallId).toBeNull();
      expect(plan.forkReason).toBe(
        "message 2 (assistant) differs from the history of every earlier call",
      );
    }
  });

  test("whitespace around text and left-out reasoning do not matter for turns without calls; other changes do", () => {
    const session = new Session();
    const { callId } = session.call(start, turn(reasoning("why\n"), text("Yes. ")), [11, eot()]);
    const parentOf = (...parts: Part[]) =>
      session.plan([...start, turn(...parts), user("n")]).parentCallId;
    expect(parentOf(reasoning("why"), text("\nYes."))).toBe(callId);
    expect(parentOf(text("Yes."))).toBe(callId);
    expect(parentOf(reasoning("other"), text("Yes."))).toBeNull();
    expect(parentOf(text("Yes!"))).toBeNull();
  });

  test.each([
    [
      "a changed user message",
      [system("s"), user("q ")],
      [bash],
      "message 1 (user) differs from the history of every earlier call",
    ],
    [
      "a changed system message",
      [system("S"), user("q")],
      [bash],
      "the first message differs from that of every earlier call",
    ],
    ["changed tools", start, [], "the tools differ from those of every earlier call"],
    [
      "a reordered tool definition",
      start,
      [{ ...bash, definitionText: `${bash.definitionText} ` }],
      "the tools differ from those of every earlier call",
    ],
  ])("%s makes a new root and says why", (_name, messages, tools, reason) => {
    const session = new Session();
    session.call(start, turn(text("a")), [11, eot()]);
    const plan = session.plan([...messages, turn(text("a")), user("n")], [...tools]);
    expect(plan).toMatchObject({ parentCallId: null, reusedTokens: 0, forkReason: reason });
    expect(plan.promptIds).toEqual(
      session.renderer.render({
        messages: [...messages, turn(text("a")), user("n")],
        tools: [...tools],
      }).ids,
    );
  });

  test("a tool result under another call id is another history", () => {
    const session = new Session();
    const messages = [...start, turn(call("c1", "{}")), result("c1", "x")];
    session.call(start, turn(call("c1", "{}")), [11, eot()]);
    const { callId } = session.call(messages, turn(text("done")), [12, eot()]);
    expect(session.plan([...messages, turn(text("done")), user("n")]).parentCallId).toBe(callId);
    const changed = [...start, turn(call("c1", "{}")), result("c1", "y")];
    expect(session.plan([...changed, turn(text("done")), user("n")]).parentCallId).toBe("call-1");
  });

  test("a string and one or several text parts are the same message", () => {
    const session = new Session();
    const { callId } = session.call([user("ab")], turn(text("x")), [11, eot()]);
    const parts = {
      role: "user",
      parts: [
        { type: "text", text: "a" },
        { type: "text", text: "b" },
      ],
    } as const;
    expect(session.plan([parts, turn(text("x")), user("n")]).parentCallId).toBe(callId);
  });

  test("equal turns go to the latest delivered", () => {
    const session = new Session();
    session.call(start, turn(text("same")), [11, eot()]);
    const second = session.call(start, turn(text("same")), [12, 13, eot()]);
    expect(second.plan).toMatchObject({ parentCallId: null, forkReason: null });
    const plan = session.plan([...start, turn(text("same")), user("n")]);
    expect(plan.parentCallId).toBe(second.callId);
    expect(plan.promptIds.slice(0, second.total.length)).toEqual(second.total);
  });

  test("a turn that the harness dropped leaves the next call on the turn before", () => {
    const session = new Session();
    const first = session.call(start, turn(call("c1", "{}")), [11, eot()]);
    const next = [...start, turn(call("c1", "{}")), result("c1", "x")];
    const cut = session.call(next, turn(text("par")), [12]);
    const again = session.plan(next);
    expect(again.parentCallId).toBe(first.callId);
    expect(again.promptIds).toEqual(cut.plan.promptIds);
  });

  test("a cut turn is closed by us, a finished one is not closed twice", () => {
    const session = new Session();
    session.call(start, turn(text("par")), [12, 13]);
    const ids = session.plan([...start, turn(text("par")), user("n")]).promptIds;
    const at = ids.indexOf(13, ids.length - 20);
    expect(ids[at + 1]).toBe(eot());
    expect(ids[at + 2]).not.toBe(eot());
  });

  test("a conversation that began elsewhere says so", () => {
    expect(new Session().plan([user("q"), turn(text("a")), user("n")]).forkReason).toBe(
      "the conversation began before this session",
    );
  });
});

describe("templates that rewrite history", () => {
  const history = [...start, turn(reasoning("why"), text("Yes.")), user("n")];

  test("keep: the tape goes on with the reasoning that was sampled", () => {
    const session = new Session();
    const { total } = session.call(start, turn(reasoning("why"), text("Yes.")), [
      151667,
      11,
      151668,
      12,
      eot(),
    ]);
    expect(session.plan(history).promptIds.slice(0, total.length)).toEqual(total);
  });

  test("template: the conversation is rendered again and forks", () => {
    const session = new Session(loadQwen3(), "template");
    session.call(start, turn(reasoning("why"), text("Yes.")), [151667, 11, 151668, 12, eot()]);
    const plan = session.plan(history);
    expect(plan).toMatchObject({
      parentCallId: null,
      forkReason: "the template writes earlier turns differently",
    });
    expect(plan.promptIds).toEqual(
      session.renderer.render({ messages: history, tools: [bash] }).ids,
    );
  });

  test("a template that cannot be continued is rendered whole, and the fork says why", () => {
    const renderer = loadRenderer({
      ...tinySource("llama"),
      chatTemplate: "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
    });
    const session = new Session(renderer);
    session.call(start, turn(text("a")), [11]);
    const plan = session.plan([...start, turn(text("a")), user("n")]);
    expect(plan.parentCallId).toBeNull();
    expect(plan.forkReason).toMatch(/^the template cannot be continued/);
  });
});

describe("laws", () => {
  const step = fc.record({
    sampled: fc.array(fc.integer({ min: 0, max: 151642 }), { maxLength: 6 }),
    ended: fc.boolean(),
    calls: fc.integer({ min: 0, max: 2 }),
    words: fc.string({ maxLength: 8 }),
    answer: fc.string({ maxLength: 8 }),
  });

  test("over any session, each prompt is the previous one + what was sampled + a delta", () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 6 }), (steps) => {
        const session = new Session();
        const messages: Message[] = [system("s"), user("q")];
        let previous: number[] = [];
        let minted = 0;
        for (const { sampled, ended, calls, words, answer } of steps) {
          const ids = ended ? [...sampled, eot()] : sampled;
          const first = minted;
          minted += calls;
          const callParts = Array.from({ length: calls }, (_, index) =>
            call(`c${first + index}`, `{"w": ${JSON.stringify(words)}}`),
          );
          const message = turn(...(words === "" ? [] : [text(words)]), ...callParts);
          const { plan, total } = session.call([...messages], message, ids);
          expect(plan.promptIds.slice(0, previous.length)).toEqual(previous);
          expect(plan.reusedTokens).toBe(previous.length);
          const delta = plan.promptIds.slice(previous.length);
          expect(delta.filter((id) => id === eot()).length).toBeLessThanOrEqual(
            2 + messages.length,
          );
          previous = total;
          const answers = callParts.flatMap((part) =>
            part.type === "tool-call" ? [result(part.toolCallId, answer)] : [],
          );
          messages.push(message, ...(answers.length > 0 ? answers : [user(answer)]));
        }
      }),
      { numRuns: 60 },
    );
  });

  test("the work of a plan grows with what is new, not with the conversation", () => {
    let rendered = 0;
    const renderer = loadQwen3();
    const counting: Renderer = {
      id: renderer.id,
      tokenizer: renderer.tokenizer,
      stopIds: renderer.stopIds,
      deltaSupport: renderer.deltaSupport,
      fingerprint: renderer.fingerprint,
      render: (conversation) => {
        rendered += conversation.messages.length;
        return renderer.render(conversation);
      },
      renderDelta: (tail, messages) => {
        rendered += messages.length;
        return renderer.renderDelta(tail, messages);
      },
      createOutputParser: (options) => renderer.createOutputParser(options),
    };
    const session = new Session(counting);
    const messages: Message[] = [user("q")];
    for (let i = 0; i < 30; i += 1) {
      session.call([...messages], turn(text(`answer ${i}`)), [i, eot()]);
      messages.push(turn(text(`answer ${i}`)), user(`q${i}`));
    }
    expect(rendered).toBe(30);
  });
});
