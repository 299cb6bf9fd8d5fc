/**
 * Values as Jinja sees them, made from lossless JSON.
 *
 * Law: `tojson` of a value made by `jsonToValue` equals Python's `json.dumps(json.loads(text), ensure_ascii=False)`. The
 * template library has no exported value classes, so they are taken from an environment once.
 */
import { type JsonNode, pythonFloatText, pythonNumberText, uniqueEntries } from "@gimbal-rl/core";
import { Environment } from "@huggingface/jinja";

/** A runtime value of the template library. */
export interface TemplateValue {
  readonly type: string;
  readonly value: unknown;
  toString(): string;
}

type ValueClass<T> = new (value: T) => TemplateValue;
type ValueFunction = (args: TemplateValue[]) => TemplateValue;

const environment = new Environment();
function classOf<T>(name: string, sample: unknown): ValueClass<T> {
  return environment.set(name, sample).constructor as unknown as ValueClass<T>;
}

const StringValue = classOf<string>("string", "");
const IntegerValue = classOf<number>("integer", 1);
const FloatValue = classOf<number>("float", 1.5);
const BooleanValue = classOf<boolean>("boolean", true);
const NullValue = classOf<null>("null", null);
const UndefinedValue = classOf<undefined>("undefined", undefined);
const ArrayValue = classOf<TemplateValue[]>("array", []);
const ObjectValue = classOf<Map<string, TemplateValue>>("object", {});
const FunctionValue = classOf<ValueFunction>("function", () => null);

/** A number whose Python text is known exactly. */
class ExactInteger extends IntegerValue {
  readonly text: string;
  constructor(text: string) {
    super(Number(text));
    this.text = pythonNumberText(text);
  }
  override toString(): string {
    return this.text;
  }
}

class PythonFloat extends FloatValue {
  readonly text: string;
  constructor(value: number) {
    super(value);
    this.text = pythonFloatText(value);
  }
  override toString(): string {
    return this.text.replace("Infinity", "inf");
  }
}

class PythonBoolean extends BooleanValue {
  override toString(): string {
    return this.value === true ? "True" : "False";
  }
}

export const stringValue = (value: string): TemplateValue => new StringValue(value);
export const booleanValue = (value: boolean): TemplateValue => new PythonBoolean(value);
export const nullValue: TemplateValue = new NullValue(null);
const undefinedValue: TemplateValue = new UndefinedValue(undefined);
export const arrayValue = (items: TemplateValue[]): TemplateValue => new ArrayValue(items);
export const integerValue = (value: number): TemplateValue => new IntegerValue(value);
export const functionValue = (call: ValueFunction): TemplateValue => new FunctionValue(call);

/** An object value; entries keep their order, undefined ones are left out. */
export function objectValue(
  entries: Iterable<readonly [string, TemplateValue | undefined]>,
): TemplateValue {
  const map = new Map<string, TemplateValue>();
  for (const [key, value] of entries) if (value !== undefined) map.set(key, value);
  return new ObjectValue(map);
}

/** Converts JSON; `text` maps every string and key (for escaping). */
export function jsonToValue(node: JsonNode, text: (value: string) => string): TemplateValue {
  switch (node.kind) {
    case "string":
      return stringValue(text(node.value));
    case "number":
      return /[.eE]/.test(node.text)
        ? new PythonFloat(Number(node.text))
        : new ExactInteger(node.text);
    case "literal":
      return node.value === null ? nullValue : booleanValue(node.value);
    case "array":
      return arrayValue(node.items.map((item) => jsonToValue(item, text)));
    case "object":
      return objectValue(
        [...uniqueEntries(node)].map(([key, value]) => [text(key), jsonToValue(value, text)]),
      );
    default:
      return node satisfies never;
  }
}

/** Converts plain options (`enable_thinking: false`) to a value. */
export function plainToValue(input: unknown): TemplateValue {
  if (input === null) return nullValue;
  if (input === undefined) return undefinedValue;
  if (typeof input === "string") return stringValue(input);
  if (typeof input === "boolean") return booleanValue(input);
  if (typeof input === "number") {
    return Number.isInteger(input) ? integerValue(input) : new PythonFloat(input);
  }
  if (Array.isArray(input)) return arrayValue(input.map(plainToValue));
  return objectValue(Object.entries(input).map(([key, value]) => [key, plainToValue(value)]));
}

/** What transformers' `tojson` filter takes. */
export interface DumpOptions {
  readonly ensureAscii: boolean;
  readonly indent: string | null;
  readonly separators: readonly [string, string] | null;
  readonly sortKeys: boolean;
}

function dumpString(text: string, ensureAscii: boolean): string {
  const quoted = JSON.stringify(text);
  if (!ensureAscii) return quoted;
  return quoted.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Python's `json.dumps` of a value. @throws {Error} for a value that JSON cannot hold. */
export function dumpJson(value: TemplateValue, options: DumpOptions, depth = 0): string {
  const { indent } = options;
  const [itemSeparator, keySeparator] = options.separators ?? [indent === null ? ", " : ",", ": "];
  const wrap = (left: string, parts: string[], right: string): string => {
    if (parts.length === 0) return left + right;
    if (indent === null) return left + parts.join(itemSeparator) + right;
    const outer = `\n${indent.repeat(depth)}`;
    const inner = outer + indent;
    return left + inner + parts.join(itemSeparator + inner) + outer + right;
  };
  const child = (inner: TemplateValue): string => dumpJson(inner, options, depth + 1);
  switch (value.type) {
    case "NullValue":
      return "null";
    case "BooleanValue":
      return value.value === true ? "true" : "false";
    case "IntegerValue":
      return value instanceof ExactInteger ? value.text : String(value.value);
    case "FloatValue":
      return value instanceof PythonFloat ? value.text : pythonFloatText(value.value as number);
    case "StringValue":
      return dumpString(value.value as string, options.ensureAscii);
    case "ArrayValue":
    case "TupleValue":
      return wrap("[", (value.value as TemplateValue[]).map(child), "]");
    case "ObjectValue":
    case "KeywordArgumentsValue": {
      let entries = [...(value.value as Map<string, TemplateValue>)];
      if (options.sortKeys) entries = entries.sort(([a], [b]) => compareCodePoints(a, b));
      const parts = entries.map(
        ([key, inner]) => dumpString(key, options.ensureAscii) + keySeparator + child(inner),
      );
      return wrap("{", parts, "}");
    }
    default:
      throw new Error(`Object of type ${value.type} is not JSON serializable`);
  }
}

/** Python orders strings by code point, JavaScript by UTF-16 unit. */
function compareCodePoints(a: string, b: string): number {
  const left = [...a];
  const right = [...b];
  for (let i = 0; i < Math.min(left.length, right.length); i += 1) {
    const difference = (left[i]?.codePointAt(0) ?? 0) - (right[i]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** Python's `str` of a value: what `{{ value }}` prints. */
export function pythonText(value: TemplateValue): string {
  switch (value.type) {
    case "UndefinedValue":
      return "";
    case "NullValue":
      return "None";
    case "BooleanValue":
      return value.value === true ? "True" : "False";
    case "FloatValue":
      return pythonFloatText(value.value as number).replace("Infinity", "inf");
    case "ArrayValue":
    case "TupleValue":
    case "ObjectValue":
      return pythonRepr(value);
    default:
      return value.toString();
  }
}

/** Python's `repr` of a value, for values inside printed lists and mappings. */
function pythonRepr(value: TemplateValue): string {
  switch (value.type) {
    case "StringValue":
      return reprString(value.value as string);
    case "ArrayValue":
      return `[${(value.value as TemplateValue[]).map(pythonRepr).join(", ")}]`;
    case "TupleValue": {
      const items = (value.value as TemplateValue[]).map(pythonRepr);
      return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`;
    }
    case "ObjectValue": {
      const entries = [...(value.value as Map<string, TemplateValue>)];
      return `{${entries.map(([key, inner]) => `${reprString(key)}: ${pythonRepr(inner)}`).join(", ")}}`;
    }
    default:
      return pythonText(value);
  }
}

function reprString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
  const escaped = text.replace(/[\\'\p{Cc}]/gu, (character) => {
    if (character === "'") return quote === "'" ? "\\'" : "'";
    if (character === "\\") return "\\\\";
    const code = character.charCodeAt(0).toString(16).padStart(2, "0");
    return named[character] ?? `\\x${code}`;
  });
  return quote + escaped + quote;
}
