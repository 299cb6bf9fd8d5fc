/**
 * The three classes of request fields of the Chat Completions API (docs/architecture/dialects.md).
 *
 * Law: every field of a request is honoured, or ignored and named in `ignoredFields`, or refused by name. None is guessed.
 */
import { GimbalError, type JsonNode, jsonMember } from "@gimbal-rl/core";

/** Fields that change what we do. Everything else at the top level is ignored and recorded, unless refused below. */
export const honouredFields: ReadonlySet<string> = new Set([
  "max_completion_tokens",
  "max_tokens",
  "messages",
  "model",
  "n",
  "seed",
  "stop",
  "stream",
  "stream_options",
  "temperature",
  "tool_choice",
  "tools",
  "top_k",
  "top_p",
]);

/** A 400 in the caller's shape. */
export function invalid(field: string, found: string, expected: string): GimbalError {
  return new GimbalError("invalid-request", `${field}: found ${found}, expected ${expected}.`, {
    details: { field },
  });
}

/** A refusal of something that would change what the answer means. */
export function refused(field: string, why: string, next: string): GimbalError {
  return new GimbalError("request-field-refused", `${field} is refused: ${why}. ${next}`, {
    details: { field },
  });
}

/** What a node is, in words. */
export function describe(node: JsonNode | undefined): string {
  if (node === undefined) return "nothing";
  switch (node.kind) {
    case "literal":
      return String(node.value);
    case "number":
      return node.text;
    case "string":
      return node.value.length <= 40 ? JSON.stringify(node.value) : "a string";
    case "array":
      return "an array";
    case "object":
      return "an object";
    default:
      return node satisfies never;
  }
}

/** A member that is present and not null. */
export function present(node: JsonNode, key: string): JsonNode | undefined {
  const member = jsonMember(node, key);
  return member?.kind === "literal" && member.value === null ? undefined : member;
}

/** @throws {GimbalError} `invalid-request` when present and not a string. */
export function optionalString(node: JsonNode, key: string, path: string): string | undefined {
  const member = present(node, key);
  if (member === undefined) return undefined;
  if (member.kind !== "string") throw invalid(`${path}${key}`, describe(member), "a string");
  return member.value;
}

/** @throws {GimbalError} `invalid-request` when present and not a number in the range. */
export function optionalNumber(
  node: JsonNode,
  key: string,
  range: { readonly min: number; readonly max: number; readonly integer: boolean },
): number | undefined {
  const member = present(node, key);
  if (member === undefined) return undefined;
  const value = member.kind === "number" ? Number(member.text) : Number.NaN;
  const fits = value >= range.min && value <= range.max;
  if (!fits || (range.integer && !Number.isInteger(value))) {
    const kind = range.integer ? "an integer" : "a number";
    const bounds =
      range.max === Number.MAX_SAFE_INTEGER
        ? `of at least ${range.min}`
        : `from ${range.min} to ${range.max}`;
    throw invalid(key, describe(member), `${kind} ${bounds}`);
  }
  return value;
}

/** @throws {GimbalError} `invalid-request` when present and not a boolean. */
export function optionalBoolean(node: JsonNode, key: string, path: string): boolean | undefined {
  const member = present(node, key);
  if (member === undefined) return undefined;
  if (member.kind !== "literal" || typeof member.value !== "boolean") {
    throw invalid(`${path}${key}`, describe(member), "true or false");
  }
  return member.value;
}

function isEmpty(node: JsonNode): boolean {
  return node.kind === "object" && node.entries.length === 0;
}

/** Refuses the short list of fields that change what the answer means. */
export function refuseFields(body: JsonNode): void {
  const n = optionalNumber(body, "n", { min: 1, max: 128, integer: true });
  if (n !== undefined && n > 1) {
    throw refused("n", `${n} answers were asked for and one is given`, "Send n requests instead.");
  }
  const bias = present(body, "logit_bias");
  if (bias !== undefined && !isEmpty(bias)) {
    throw refused(
      "logit_bias",
      "sampled log-probabilities would not be the policy's own",
      "Remove it from the harness configuration.",
    );
  }
  const format = present(body, "response_format");
  const schema = format === undefined ? undefined : present(format, "json_schema");
  if (schema !== undefined && optionalBoolean(schema, "strict", "response_format.json_schema.")) {
    throw refused(
      "response_format",
      "a strict JSON schema cannot be enforced here",
      "Send strict: false, or offer a tool with that schema.",
    );
  }
  const modalities = present(body, "modalities");
  if (
    modalities?.kind === "array" &&
    modalities.items.some((item) => item.kind === "string" && item.value !== "text")
  ) {
    throw refused(
      "modalities",
      "the model answers with text only",
      'Send ["text"] or leave it out.',
    );
  }
  for (const legacy of ["functions", "function_call"]) {
    if (present(body, legacy) !== undefined) {
      throw refused(legacy, "the function-calling form before tools is not served", "Send tools.");
    }
  }
}
