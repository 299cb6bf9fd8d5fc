/**
 * The sampler's scheduler: continuous admission over a trie of key/value segments.
 *
 * Laws. A call's result (ids and log-probability bits) depends on its request and the weights alone: not on what else
 * is in the batch, on arrival order, on chunking, or on what was cached. Each prompt row is computed once, whoever
 * needs it first. The oldest running call is never preempted, so every call ends.
 */
import type { DecodablePolicy, KeyValueCache } from "@gimbal-rl/compute";
import { attributeError, type GenerateRequest, type PolicyVersion } from "@gimbal-rl/core";
import { type Draw, drawAll, toSinglePrecisionUniform } from "./sampling.js";
import { isComputed, SegmentTrie } from "./segment-trie.js";
import { type CallSink, createSequence, type Sequence, type SequenceLimits } from "./sequence.js";
import { SessionShares } from "./session-shares.js";
import { countStep, emptyStats, type SamplerStats } from "./stats.js";
import { StepBuilder } from "./step-builder.js";

/** Slots held ahead for a call that decodes, so that its sampled tokens stay in one run. */
const decodeReserve = 32;

/** Prefill rows given to one session before the next one has its turn. */
const prefillQuantum = 64;

/** Options of {@link Scheduler}. */
export interface SchedulerOptions {
  readonly policy: DecodablePolicy;
  readonly policyVersion: PolicyVersion;
  /** Tokens whose keys and values are kept at once. */
  readonly slots: number;
  /** Calls that run at once; further ones wait. Default 64. */
  readonly maxRunning?: number;
  /** Prompt rows computed in one step, so that long prompts do not hold up calls that decode. Default 256. */
  readonly prefillRows?: number;
  /** Monotonic milliseconds, for `busyMs` only. */
  readonly nowMs: () => number;
}

/** Batches calls over one policy. Drive it with `step` until it says that nothing is left. */
export class Scheduler {
  readonly limits: SequenceLimits;
  readonly #policy: DecodablePolicy;
  readonly #caches: readonly KeyValueCache[];
  readonly #trie: SegmentTrie;
  readonly #maxRunning: number;
  readonly #prefillRows: number;
  readonly #nowMs: () => number;
  readonly #stats = emptyStats();
  /** By arrival. */
  #waiting: Sequence[] = [];
  /** By arrival. */
  #running: Sequence[] = [];
  #arrivals = 0;
  #policyVersion: PolicyVersion;
  readonly #shares: SessionShares = new SessionShares();

  constructor(options: SchedulerOptions) {
    const { policy, slots } = options;
    this.#policy = policy;
    this.#policyVersion = options.policyVersion;
    this.#caches = policy.allocateCaches(slots);
    this.#trie = new SegmentTrie(slots);
    this.#maxRunning = options.maxRunning ?? 64;
    this.#prefillRows = options.prefillRows ?? 256;
    this.#nowMs = options.nowMs;
    this.limits = {
      contextLength: Math.min(policy.config.maxPositions, slots),
      vocabularySize: policy.config.vocabularySize,
    };
  }

  /** Whether no call waits or runs. */
  get idle(): boolean {
    return this.#waiting.length === 0 && this.#running.length === 0;
  }

  /** Counters since the start, and the present load. */
  stats(): SamplerStats {
    return {
      ...this.#stats,
      waiting: this.#waiting.length,
      running: this.#running.length,
      usedSlots: this.#trie.usedSlots,
      evictedRows: this.#trie.evictedSlots,
      segments: this.#trie.segmentCount,
    };
  }

  /**
   * Takes a call; its results come to the sink during later steps. Returns what aborts it.
   * @throws {GimbalError} `invalid-request`, `context-length-exceeded`.
   */
  submit(request: GenerateRequest, sink: CallSink): () => void {
    const sequence = createSequence(request, this.limits, this.#arrivals, sink);
    this.#arrivals += 1;
    this.#waiting.push(sequence);
    return () => this.#abort(sequence);
  }

  /**
   * Declares that the policy has other weights now. What was cached is forgotten; calls that run go on under the
   * new version (the host lets them finish first).
   */
  weightsReplaced(policyVersion: PolicyVersion): void {
    for (const sequence of [...this.#running]) this.#preempt(sequence);
    this.#trie.clear();
    this.#policyVersion = policyVersion;
    this.#stats.weightLoads += 1;
  }

  /** Fails every call, for example because the model failed, and forgets the cache. */
  failAll(error: unknown): void {
    const failure = attributeError(error, "engine-failed", "compute", "The local engine failed");
    const calls = [...this.#running, ...this.#waiting];
    this.#running = [];
    this.#waiting = [];
    this.#shares.clear();
    this.#trie.clear();
    for (const call of calls) {
      call.cursor = null;
      call.sink.fail(failure);
    }
  }

  /** Runs one batch. False when there was nothing to do. A failure fails the calls in flight, never the caller. */
  async step(): Promise<boolean> {
    if (this.idle) return false;
    const startMs = this.#nowMs();
    try {
      this.#admit();
      const builder = new StepBuilder();
      const ready = this.#planDecodes(builder);
      this.#planPrefills(builder, ready);
      const draws: Draw[] = [];
      for (const sequence of ready) draws.push(drawOf(sequence, builder));
      countStep(this.#stats, builder);
      const input = builder.build();
      const logits = this.#policy.decode({ ...input, caches: this.#caches });
      const { backend, config } = this.#policy;
      const rowCount = input.logitRows.length;
      try {
        if (rowCount > 0) {
          const drawn = await drawAll(backend, logits, rowCount, config.vocabularySize, draws);
          // A call may have been aborted while the backend worked.
          const live = ready.map((sequence) => sequence.cursor !== null);
          // All results are taken before any is stored, because storing may preempt a call of this batch.
          ready.forEach((sequence, i) => {
            if (live[i]) this.#accept(sequence, drawn[i].id, drawn[i].logprob);
          });
          for (const sequence of ready) this.#store(sequence);
        }
      } finally {
        backend.free(logits);
      }
    } catch (error) {
      this.failAll(error);
    }
    this.#stats.busyMs += this.#nowMs() - startMs;
    return true;
  }

  /** Frees the cache. */
  dispose(): void {
    for (const cache of this.#caches) this.#policy.backend.free(cache);
  }

  /** Lets waiting calls run while there is room; sessions with fewer running calls go first, then earlier ones. */
  #admit(): void {
    while (this.#waiting.length > 0 && this.#running.length < this.#maxRunning) {
      const perSession = new Map<string, number>();
      for (const { sessionId } of this.#running) {
        perSession.set(sessionId, (perSession.get(sessionId) ?? 0) + 1);
      }
      // Whoever has sampled already was preempted and goes on first.
      let next = this.#waiting.find(({ sampled }) => sampled > 0) ?? this.#waiting[0];
      for (const candidate of next.sampled > 0 ? [] : this.#waiting) {
        const load = perSession.get(candidate.sessionId) ?? 0;
        if (load < (perSession.get(next.sessionId) ?? 0)) next = candidate;
      }
      if (!this.#start(next)) return;
      this.#waiting.splice(this.#waiting.indexOf(next), 1);
      insertByArrival(this.#running, next);
    }
  }

  /** Places a call in the trie. False when the slots do not suffice now. */
  #start(sequence: Sequence): boolean {
    const cursor = this.#trie.open();
    const stored = this.#trie.follow(cursor, sequence.ids);
    const missing = sequence.ids.length - stored;
    const left = sequence.maxTokens - sequence.sampled;
    const ahead = Math.min(decodeReserve, left);
    if (this.#running.length > 0 && this.#trie.availableSlots() < missing + ahead) {
      this.#trie.close(cursor);
      return false;
    }
    const placed = this.#trie.advance(cursor, sequence.ids, stored, Math.min(ahead, left - 1));
    if (placed < missing) {
      this.#trie.close(cursor);
      return false;
    }
    sequence.cursor = cursor;
    this.#shares.join(sequence.sessionId);
    return true;
  }

  /** Calls that sample in this step for the price of one row: those that decode, and prompts that are cached. */
  #planDecodes(builder: StepBuilder): Sequence[] {
    const ready: Sequence[] = [];
    for (const sequence of this.#running) {
      const { cursor, sampled } = sequence;
      if (cursor === null) continue;
      const missing = cursor.offset - cursor.segment.computed;
      if (missing > (sampled > 0 ? 1 : 0)) continue;
      builder.compute(cursor, 1);
      if (isComputed(cursor)) ready.push(sequence);
    }
    return ready;
  }

  /** Prompt rows in turns between sessions; calls whose prompt is complete now join `ready`. */
  #planPrefills(builder: StepBuilder, ready: Sequence[]): void {
    const decoding = new Set(ready);
    const pending = this.#running.filter((sequence) => !decoding.has(sequence));
    let budget = this.#prefillRows;
    while (pending.length > 0) {
      const at = this.#shares.leastServed(pending);
      const sequence = pending[at];
      const { cursor } = sequence;
      if (cursor === null) return;
      const rows = builder.compute(cursor, Math.min(budget, prefillQuantum));
      budget -= rows;
      sequence.computedRows += rows;
      this.#shares.add(sequence.sessionId, rows);
      if (isComputed(cursor)) {
        ready.push(sequence);
        pending.splice(at, 1);
      } else if (budget === 0) {
        // The rest may be complete through rows that others computed in this step.
        for (const other of pending) {
          if (other.cursor !== null && isComputed(other.cursor)) ready.push(other);
        }
        return;
      }
    }
  }

  /** Takes a sampled id: emits it and ends the call or stores the id for the next step. */
  #accept(sequence: Sequence, id: number, logprob: number): void {
    if (sequence.sampled === 0) {
      const prompt = sequence.request.promptIds.length;
      sequence.cachedTokens = Math.max(0, prompt - sequence.computedRows);
      this.#stats.reusedRows += sequence.cachedTokens;
    }
    sequence.sampled += 1;
    this.#stats.sampledTokens += 1;
    sequence.sink.token(id, logprob, this.#policyVersion);
    if (sequence.stopIds.has(id)) this.#finish(sequence, "stop");
    else if (sequence.sampled >= sequence.maxTokens) this.#finish(sequence, "length");
    else sequence.ids.push(id);
  }

  /** Stores the last sampled id of a call that goes on, preempting the latest calls while slots are missing. */
  #store(sequence: Sequence): void {
    const { ids, maxTokens, sampled } = sequence;
    // The last token of a call is never run through the model and needs no slot.
    const reserve = Math.max(0, Math.min(decodeReserve, maxTokens - sampled - 1));
    while (sequence.cursor !== null) {
      if (this.#trie.advance(sequence.cursor, ids, ids.length - 1, reserve) === 1) return;
      const latest = this.#running[this.#running.length - 1];
      this.#preempt(latest);
      this.#stats.preemptions += 1;
    }
  }

  /** Takes a running call's slots; it goes on later where it was, with the same result. */
  #preempt(sequence: Sequence): void {
    this.#leave(sequence);
    insertByArrival(this.#waiting, sequence);
  }

  #finish(sequence: Sequence, reason: "stop" | "length" | "aborted"): void {
    this.#leave(sequence);
    sequence.sink.end(reason, sequence.cachedTokens);
  }

  #abort(sequence: Sequence): void {
    const index = this.#waiting.indexOf(sequence);
    if (index >= 0) this.#waiting.splice(index, 1);
    else if (!this.#running.includes(sequence)) return;
    this.#stats.abortedCalls += 1;
    this.#finish(sequence, "aborted");
  }

  #leave(sequence: Sequence): void {
    const index = this.#running.indexOf(sequence);
    if (index >= 0) this.#running.splice(index, 1);
    if (sequence.cursor !== null) this.#trie.close(sequence.cursor);
    sequence.cursor = null;
    if (!this.#running.some(({ sessionId }) => sessionId === sequence.sessionId)) {
      this.#shares.leave(sequence.sessionId);
    }
  }
}

function drawOf(sequence: Sequence, builder: StepBuilder): Draw {
  const { cursor, random, request } = sequence;
  if (cursor === null) throw new Error("a ready call has a cursor");
  return {
    row: builder.logits(cursor),
    sampling: request.sampling,
    uniform: toSinglePrecisionUniform(random.next()),
  };
}

function insertByArrival(list: Sequence[], sequence: Sequence): void {
  let at = list.length;
  while (at > 0 && list[at - 1].arrival > sequence.arrival) at -= 1;
  list.splice(at, 0, sequence);
}
