/**
 * JSON that loses nothing: key order, number text and raw slices are kept.
 *
 * Law: `text.slice(node.start, node.end)` is the node exactly as it was sent. JavaScript's own `JSON.parse` turns `1.0`
 * into `1`, rounds integers above 2^53 and reorders integer-like keys; each of these changes what a model reads.
 */
import { GimbalError } from "./errors.js";

/** Where a node lies in its text, in UTF-16 units; `end` is exclusive. */
export interface JsonRange {
  readonly start: number;
  readonly end: number;
}

/** An object; entries in the order written, duplicates included. */
export interface JsonObject extends JsonRange {
  readonly kind: "object";
  readonly entries: readonly { readonly key: string; readonly value: JsonNode }[];
}

/** An array. */
export interface JsonArray extends JsonRange {
  readonly kind: "array";
  readonly items: readonly JsonNode[];
}

/** A string, unescaped. */
export interface JsonString extends JsonRange {
  readonly kind: "string";
  readonly value: string;
}

/** A number; `text` is its source text. */
export interface JsonNumber extends JsonRange {
  readonly kind: "number";
  readonly text: string;
}

/** `true`, `false` or `null`. */
export interface JsonLiteral extends JsonRange {
  readonly kind: "literal";
  readonly value: boolean | null;
}

/** Any JSON value with its place in the text. */
export type JsonNode = JsonObject | JsonArray | JsonString | JsonNumber | JsonLiteral;

/** Deepest nesting accepted: beyond any real schema, far below the stack. */
const maxDepth = 256;
const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

class Reader {
  private at = 0;
  private readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  document(): JsonNode {
    this.space();
    const node = this.value(0);
    this.space();
    if (this.at < this.text.length) this.fail("the end of the text");
    return node;
  }

  private fail(expected: string): never {
    const found =
      this.at < this.text.length
        ? JSON.stringify(this.text.slice(this.at, this.at + 12))
        : "the end of the text";
    throw new GimbalError(
      "invalid-request",
      `Invalid JSON at position ${this.at}: found ${found}, expected ${expected}.`,
      { details: { position: this.at } },
    );
  }

  private space(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.at);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.at += 1;
    }
  }

  private value(depth: number): JsonNode {
    if (depth > maxDepth) this.fail(`at most ${maxDepth} levels of nesting`);
    switch (this.text[this.at]) {
      case "{":
        return this.object(depth);
      case "[":
        return this.array(depth);
      case '"':
        return this.string();
      case "t":
        return this.literal("true", true);
      case "f":
        return this.literal("false", false);
      case "n":
        return this.literal("null", null);
      default:
        return this.number();
    }
  }

  private literal(word: string, value: boolean | null): JsonLiteral {
    if (!this.text.startsWith(word, this.at)) this.fail("a value");
    const start = this.at;
    this.at += word.length;
    return { kind: "literal", value, start, end: this.at };
  }

  private number(): JsonNumber {
    numberPattern.lastIndex = this.at;
    const match = numberPattern.exec(this.text);
    if (match === null) this.fail("a value");
    const start = this.at;
    this.at += match[0].length;
    return { kind: "number", text: match[0], start, end: this.at };
  }

  private string(): JsonString {
    const start = this.at;
    let at = start + 1;
    let escaped = false;
    for (;;) {
      const code = this.text.charCodeAt(at);
      if (code === 34) break;
      if (code === 92) {
        escaped = true;
        at += 2;
        continue;
      }
      if (Number.isNaN(code) || code < 32) {
        this.at = at;
        this.fail("the rest of a string (control characters must be escaped)");
      }
      at += 1;
    }
    const raw = this.text.slice(start, at + 1);
    let value: string;
    if (escaped) {
      try {
        value = JSON.parse(raw) as string;
      } catch {
        return this.fail("a string with valid escapes");
      }
    } else {
      value = raw.slice(1, -1);
    }
    this.at = at + 1;
    return { kind: "string", value, start, end: this.at };
  }

  private array(depth: number): JsonArray {
    const start = this.at;
    const items: JsonNode[] = [];
    this.at += 1;
    this.space();
    if (this.text[this.at] === "]") {
      this.at += 1;
      return { kind: "array", items, start, end: this.at };
    }
    for (;;) {
      this.space();
      items.push(this.value(depth + 1));
      this.space();
      const next = this.text[this.at];
      if (next !== "," && next !== "]") this.fail("`,` or `]`");
      this.at += 1;
      if (next === "]") return { kind: "array", items, start, end: this.at };
    }
  }

  private object(depth: number): JsonObject {
    const start = this.at;
    const entries: { key: string; value: JsonNode }[] = [];
    this.at += 1;
    this.space();
    if (this.text[this.at] === "}") {
      this.at += 1;
      return { kind: "object", entries, start, end: this.at };
    }
    for (;;) {
      this.space();
      if (this.text[this.at] !== '"') this.fail("a quoted key");
      const key = this.string().value;
      this.space();
      if (this.text[this.at] !== ":") this.fail("`:`");
      this.at += 1;
      this.space();
      entries.push({ key, value: this.value(depth + 1) });
      this.space();
      const next = this.text[this.at];
      if (next !== "," && next !== "}") this.fail("`,` or `}`");
      this.at += 1;
      if (next === "}") return { kind: "object", entries, start, end: this.at };
    }
  }
}

/**
 * Parses JSON text (RFC 8259) without losing anything.
 * @throws {GimbalError} `invalid-request` with the position of the first error.
 * @example
 * parseJsonText('{"b": 1.0}'); // { kind: "object", entries: [{ key: "b", value: { kind: "number", text: "1.0", ... } }], ... }
 */
export function parseJsonText(text: string): JsonNode {
  return new Reader(text).document();
}

/** A member of an object by key, the last when repeated (as Python and JavaScript do); undefined when absent. */
export function jsonMember(node: JsonNode, key: string): JsonNode | undefined {
  if (node.kind !== "object") return undefined;
  return node.entries.findLast((entry) => entry.key === key)?.value;
}

/** Entries of an object with repeated keys resolved as Python does: first position, last value. */
export function uniqueEntries(node: JsonObject): ReadonlyMap<string, JsonNode> {
  return new Map(node.entries.map((entry) => [entry.key, entry.value]));
}

/** The plain JavaScript value of a node, for fields whose numbers may be rounded. */
export function jsonToPlain(node: JsonNode): unknown {
  switch (node.kind) {
    case "object": {
      const result: Record<string, unknown> = {};
      for (const [key, value] of uniqueEntries(node)) {
        Object.defineProperty(result, key, {
          value: jsonToPlain(value),
          enumerable: true,
          configurable: true,
          writable: true,
        });
      }
      return result;
    }
    case "array":
      return node.items.map(jsonToPlain);
    case "number":
      return Number(node.text);
    case "string":
    case "literal":
      return node.value;
    default:
      return node satisfies never;
  }
}

/** A finite or infinite double as Python's `repr` and `json.dumps` print it: `1.0`, `1e-07`, `1e+16`, `Infinity`. */
export function pythonFloatText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value > 0 ? "Infinity" : "-Infinity";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  // Both languages print the shortest digits that read back; they differ in when they use an exponent.
  const [mantissa = "", exponentText = "0"] = Math.abs(value).toExponential().split("e");
  const digits = mantissa.replace(".", "");
  const exponent = Number(exponentText);
  const sign = value < 0 ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : "";
    const power = String(Math.abs(exponent)).padStart(2, "0");
    return `${sign}${digits[0]}${fraction}e${exponent < 0 ? "-" : "+"}${power}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  return `${sign}${whole}.${digits.slice(exponent + 1) || "0"}`;
}

/** A JSON number's text as Python prints it after reading it: integers exactly, the rest as a double. */
export function pythonNumberText(text: string): string {
  if (/[.eE]/.test(text)) return pythonFloatText(Number(text));
  return text === "-0" ? "0" : text;
}
