/**
 * The tape: what one session's prompts and samples look like as ids.
 *
 * Laws. (1) A call that continues a branch is sent its parent's prompt ids + the parent's sampled ids + the delta: sampled
 * ids are never rendered or tokenised again. (2) A branch is continued only if its whole history is a prefix of the new
 * conversation: sampled turns by the tool-call ids we minted, or by their text; everything else exactly, tools included.
 * (3) Ids are stored once: a call holds what it added to its parent.
 */
import type { AssistantMessage, CallId, Conversation, Message } from "@gimbal-rl/core";
import { callIdsKey, givenKey, rewrittenCalls, textOnlyKey, toolsKey } from "./message-key.js";
import type { Renderer, Tape, TapePlan } from "./renderer.js";

/** How the tape treats history that the template would write differently. */
export interface TapeOptions {
  /** `keep` (default): the tape goes on. `template`: the conversation is rendered again, and forks when ids differ. */
  readonly history?: "keep" | "template";
}

interface CommittedCall {
  readonly callId: CallId;
  readonly parent: CommittedCall | null;
  /** Prompt ids beyond the parent's prompt and sample. */
  readonly addedIds: readonly number[];
  readonly sampledIds: readonly number[];
  /** Prompt and sample together. */
  readonly totalLength: number;
}

/** One message of a known history. Children by key. */
interface HistoryNode {
  readonly children: Map<string, HistoryNode>;
  /** The sampled turn that this node stands for, when it was sampled here. */
  sampled: AssistantMessage | null;
  /** The latest call whose prompt and turn end here. */
  call: CommittedCall | null;
}

interface Walk {
  /** Messages matched. */
  readonly depth: number;
  readonly node: HistoryNode;
  readonly best: { readonly depth: number; readonly call: CommittedCall } | null;
  readonly rewritten: readonly string[];
}

function createNode(): HistoryNode {
  return { children: new Map(), sampled: null, call: null };
}

function childFor(node: HistoryNode, message: Message): HistoryNode | undefined {
  if (message.role === "assistant") {
    const idsKey = callIdsKey(message);
    const byIds = idsKey === null ? undefined : node.children.get(idsKey);
    if (byIds !== undefined) return byIds;
  }
  return node.children.get(givenKey(message));
}

/** Creates the tape of one session. */
export function createTape(renderer: Renderer, options: TapeOptions = {}): Tape {
  return new SessionTape(renderer, options.history ?? "keep");
}

class SessionTape implements Tape {
  private readonly renderer: Renderer;
  private readonly history: "keep" | "template";
  private readonly roots = new Map<string, HistoryNode>();
  private readonly calls = new Map<CallId, CommittedCall>();

  constructor(renderer: Renderer, history: "keep" | "template") {
    this.renderer = renderer;
    this.history = history;
  }

  plan(conversation: Conversation): TapePlan {
    const root = this.roots.get(toolsKey(conversation.tools));
    const walk = root === undefined ? null : this.walk(root, conversation.messages);
    const best = walk?.best ?? null;
    if (walk === null || best === null) {
      return this.root(conversation, this.forkReason(conversation, walk));
    }
    const { supported, reason } = this.renderer.deltaSupport;
    if (!supported) {
      return this.root(conversation, `the template cannot be continued: ${reason ?? "unknown"}`);
    }
    const base = collectIds(best.call);
    if (this.history === "template") {
      const { ids } = this.renderer.render(conversation);
      if (base.some((id, index) => ids[index] !== id)) {
        return this.root(conversation, "the template writes earlier turns differently", ids);
      }
      return planOn(best.call, ids, walk.rewritten);
    }
    const delta = this.renderer.renderDelta(
      best.call.sampledIds,
      conversation.messages.slice(best.depth),
    );
    return planOn(best.call, base.concat(delta), walk.rewritten);
  }

  commit(entry: {
    readonly callId: CallId;
    readonly conversation: Conversation;
    readonly plan: TapePlan;
    readonly sampledIds: readonly number[];
    readonly message: AssistantMessage;
  }): void {
    const { parentCallId, promptIds, reusedTokens } = entry.plan;
    const parent = parentCallId === null ? null : (this.calls.get(parentCallId) ?? null);
    const call: CommittedCall = {
      callId: entry.callId,
      parent,
      addedIds: promptIds.slice(parent === null ? 0 : reusedTokens),
      sampledIds: [...entry.sampledIds],
      totalLength: promptIds.length + entry.sampledIds.length,
    };
    this.calls.set(entry.callId, call);
    const key = toolsKey(entry.conversation.tools);
    let node = this.roots.get(key);
    if (node === undefined) {
      node = createNode();
      this.roots.set(key, node);
    }
    for (const message of entry.conversation.messages) {
      let child = childFor(node, message);
      if (child === undefined) {
        child = createNode();
        node.children.set(givenKey(message), child);
      }
      node = child;
    }
    const turn: HistoryNode = { children: new Map(), sampled: entry.message, call };
    for (const turnKey of turnKeys(entry.message)) {
      const known = node.children.get(turnKey);
      if (known === undefined) node.children.set(turnKey, turn);
      else {
        // The same turn sampled again: later messages may hang below it; the latest delivered wins.
        known.call = call;
        known.sampled = entry.message;
      }
    }
  }

  private walk(root: HistoryNode, messages: readonly Message[]): Walk {
    let node = root;
    let depth = 0;
    let best: Walk["best"] = null;
    let rewritten: string[] = [];
    const pending: string[] = [];
    for (const message of messages) {
      const child = childFor(node, message);
      if (child === undefined) break;
      depth += 1;
      node = child;
      if (message.role !== "assistant") continue;
      if (child.sampled !== null) pending.push(...rewrittenCalls(child.sampled, message));
      if (child.call !== null) {
        best = { depth, call: child.call };
        rewritten = [...pending];
      }
    }
    return { depth, node, best, rewritten };
  }

  private root(
    conversation: Conversation,
    forkReason: string | null,
    ids: readonly number[] = this.renderer.render(conversation).ids,
  ): TapePlan {
    return { promptIds: ids, parentCallId: null, reusedTokens: 0, rewritten: [], forkReason };
  }

  private forkReason(conversation: Conversation, walk: Walk | null): string | null {
    const turns = conversation.messages.some((message) => message.role === "assistant");
    if (this.calls.size === 0) return turns ? "the conversation began before this session" : null;
    if (walk === null) return "the tools differ from those of every earlier call";
    // The same beginning again, without a sampled turn: a sibling, not a fork.
    if (walk.depth === conversation.messages.length) return null;
    if (walk.depth === 0) return "the first message differs from that of every earlier call";
    const role = conversation.messages[walk.depth]?.role ?? "unknown";
    return `message ${walk.depth} (${role}) differs from the history of every earlier call`;
  }
}

function turnKeys(message: AssistantMessage): Set<string> {
  const keys = [callIdsKey(message), givenKey(message), textOnlyKey(message)];
  return new Set(keys.filter((key) => key !== null));
}

function planOn(
  call: CommittedCall,
  promptIds: readonly number[],
  rewritten: readonly string[],
): TapePlan {
  return {
    promptIds,
    parentCallId: call.callId,
    reusedTokens: call.totalLength,
    rewritten,
    forkReason: null,
  };
}

/** Prompt and sampled ids of a call. */
function collectIds(call: CommittedCall): number[] {
  const ids = new Array<number>(call.totalLength);
  let end = call.totalLength;
  for (let at: CommittedCall | null = call; at !== null; at = at.parent) {
    for (const part of [at.sampledIds, at.addedIds]) {
      end -= part.length;
      for (let i = 0; i < part.length; i += 1) ids[end + i] = part[i] ?? 0;
    }
  }
  return ids;
}
