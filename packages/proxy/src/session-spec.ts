/**
 * What the control side asks of a session, and what it can read back. Plain data in both directions.
 */
import {
  type AttemptId,
  asId,
  type Budgets,
  GimbalError,
  type SamplingParameters,
  type SessionId,
  type TaskId,
} from "@gimbal-rl/core";

/** Body of `POST /v1/sessions`. */
export interface SessionSpec {
  readonly attemptId?: AttemptId;
  readonly taskId?: TaskId;
  /** Training sessions sample as the run says, whatever the harness asks. Default false. */
  readonly training?: boolean;
  readonly sampling?: Partial<SamplingParameters>;
  readonly budgets?: Budgets;
  readonly labels?: Readonly<Record<string, string>>;
  /** 32-bit unsigned. Every sampled token derives from it; sessions with equal seeds and prompts draw alike. Default: from
   * the attempt's id. */
  readonly seed?: number;
}

/** Answer of `POST /v1/sessions`. The key is shown once. */
export interface SessionGrant {
  readonly sessionId: SessionId;
  readonly key: string;
  readonly baseUrls: {
    readonly openai: string;
    readonly anthropic: string;
    readonly google: string;
  };
}

/** A budget or limit that stopped or cut a call; the words are failure classes of `core`. */
export type SessionLimit = "call-budget" | "token-budget" | "context-overflow" | "wall-clock";

/** How often a limit was hit. */
export interface LimitHit {
  readonly limit: SessionLimit;
  readonly hits: number;
  /** Calls admitted when it was first hit. */
  readonly atCall: number;
}

/** What is known about a session. */
export interface SessionInfo {
  readonly sessionId: SessionId;
  readonly attemptId: AttemptId | null;
  readonly taskId: TaskId | null;
  readonly state: "open" | "closed";
  readonly training: boolean;
  readonly sampling: SamplingParameters;
  readonly budgets: Budgets;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly closedAtMs: number | null;
  /** Calls admitted (each may sample). */
  readonly calls: number;
  readonly inFlight: number;
  readonly sampledTokens: number;
  readonly promptTokens: number;
  readonly limitHits: readonly LimitHit[];
  /**
   * Refused requests by error code, and calls that failed by a fault of the engine (`engine-failed`, `timeout`,
   * `unavailable`); `session-busy` counts requests beyond what one session may have open.
   */
  readonly refusals: Readonly<Record<string, number>>;
  /** Requests answered from an earlier call because a retry mark said so. */
  readonly replays: number;
  /** Losses of a record (not made, not stored) or of a branch on the tape; a training session with any must not be trained. */
  readonly captureFailures: number;
}

function refuse(field: string, expected: string, found: unknown): never {
  throw new GimbalError(
    "invalid-request",
    `Session field "${field}" must be ${expected}; got ${JSON.stringify(found) ?? "nothing"}.`,
    { details: { field } },
  );
}

function record(field: string, value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    refuse(field, "an object", value);
  }
  return value as Record<string, unknown>;
}

function numbers<Name extends string>(
  field: string,
  value: unknown,
  names: Readonly<Record<Name, (value: number) => boolean>>,
): Partial<Record<Name, number>> {
  const result: Partial<Record<Name, number>> = {};
  for (const [name, found] of Object.entries(record(field, value))) {
    if (!Object.hasOwn(names, name)) {
      refuse(`${field}.${name}`, `one of ${Object.keys(names).join(", ")}`, found);
    }
    const isValid = names[name as Name];
    if (typeof found !== "number" || !isValid(found)) {
      refuse(`${field}.${name}`, "a number in its range", found);
    }
    result[name as Name] = found;
  }
  return result;
}

const isSeed = (value: number): boolean =>
  Number.isSafeInteger(value) && value >= 0 && value < 2 ** 32;
const isCount = (value: number): boolean => Number.isSafeInteger(value) && value > 0;
const budgetNames = {
  maxCalls: isCount,
  maxSampledTokens: isCount,
  maxContextTokens: isCount,
  maxTokensPerCall: isCount,
  wallClockMs: isCount,
};
const samplingNames = {
  temperature: (value: number): boolean => value >= 0 && value <= 100,
  topP: (value: number): boolean => value > 0 && value <= 1,
  topK: (value: number): boolean => Number.isSafeInteger(value) && value >= 0,
};

/**
 * Checks a session specification that came over the wire.
 * @throws {GimbalError} `invalid-request`, naming the field.
 */
export function parseSessionSpec(value: unknown): SessionSpec {
  const spec: { -readonly [Key in keyof SessionSpec]: SessionSpec[Key] } = {};
  for (const [name, found] of Object.entries(record("(body)", value))) {
    // Null means "not given", as an absent field does.
    if (found === null) continue;
    switch (name) {
      case "attemptId":
      case "taskId":
        if (typeof found !== "string" || found === "") refuse(name, "a non-empty string", found);
        if (name === "attemptId") spec.attemptId = asId<AttemptId>(found);
        else spec.taskId = asId<TaskId>(found);
        break;
      case "training":
        if (typeof found !== "boolean") refuse(name, "true or false", found);
        spec.training = found;
        break;
      case "seed":
        if (typeof found !== "number" || !isSeed(found))
          refuse(name, "a 32-bit unsigned number", found);
        spec.seed = found;
        break;
      case "sampling":
        spec.sampling = numbers(name, found, samplingNames);
        break;
      case "budgets":
        spec.budgets = numbers(name, found, budgetNames);
        break;
      case "labels":
        for (const [label, text] of Object.entries(record(name, found))) {
          if (typeof text !== "string") refuse(`labels.${label}`, "a string", text);
        }
        spec.labels = found as Record<string, string>;
        break;
      default:
        refuse(name, "absent (it is not known)", found);
    }
  }
  return spec;
}
