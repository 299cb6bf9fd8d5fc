/**
 * Chat templates: Jinja source to text, with the Python behaviour that templates rely on.
 *
 * Law: the text equals what `transformers` renders. Where the library differs, the parsed template is rewritten to call
 * our own functions: `tojson` (Python's json.dumps), `strip`/`lstrip`/`rstrip`/`trim` (with their argument). Loops are
 * instrumented with marks that say which message the text came from. `strftime_now` is left undefined: prompts that hold
 * today's date cannot be repeated.
 */
import { GimbalError } from "@gimbal-rl/core";
import { Environment, Interpreter, Template } from "@huggingface/jinja";
import { ownerMark } from "./marks.js";
import { checkFilters, rewriteTemplate } from "./template-rewrite.js";
import {
  arrayValue,
  booleanValue,
  type DumpOptions,
  dumpJson,
  functionValue,
  integerValue,
  nullValue,
  pythonText,
  stringValue,
  type TemplateValue,
} from "./template-values.js";

/** A compiled chat template. */
export interface ChatTemplate {
  /**
   * Renders to text. With `owners`, marks are put around what the loops over these values print.
   * @throws {GimbalError} `template-unsupported` for syntax, filters or functions that are missing here;
   * `invalid-request` when the template itself refuses the conversation.
   */
  render(
    variables: ReadonlyMap<string, TemplateValue>,
    owners?: ReadonlyMap<TemplateValue, string>,
  ): string;
}

/** Thrown by a template's own `raise_exception`. */
class TemplateRefusal extends Error {}

function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").trim().slice(0, 300);
}

function unsupported(what: string, error: unknown): GimbalError {
  return new GimbalError(
    "template-unsupported",
    `The chat template ${what}: ${oneLine(error)}. Use a template without it (chat_template.jinja in the model folder).`,
    { cause: error },
  );
}

/** Python's `str.isspace` characters, which are not those of JavaScript's `trim`. */
const pythonSpace =
  "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000";

function strip(text: string, characters: string, left: boolean, right: boolean): string {
  let start = 0;
  let end = text.length;
  while (left && start < end && characters.includes(text.charAt(start))) start += 1;
  while (right && end > start && characters.includes(text.charAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function stripFunction(left: boolean, right: boolean): TemplateValue {
  return functionValue(([operand, characters]) => {
    if (
      operand === undefined ||
      operand.type === "UndefinedValue" ||
      operand.type === "NullValue"
    ) {
      throw new Error(`strip of ${operand?.type ?? "nothing"}`);
    }
    const set = characters?.type === "StringValue" ? (characters.value as string) : pythonSpace;
    return stringValue(strip(operand.toString(), set, left, right));
  });
}

function dumpOptions(args: readonly TemplateValue[]): DumpOptions {
  const last = args.at(-1);
  const keywords =
    last?.type === "KeywordArgumentsValue" ? (last.value as Map<string, TemplateValue>) : null;
  const positional = keywords === null ? args : args.slice(0, -1);
  // Order of transformers' own filter: tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False).
  const option = (index: number, name: string): TemplateValue | undefined =>
    positional[index] ?? keywords?.get(name);
  const indent = option(1, "indent")?.value;
  const separators = option(2, "separators")?.value as TemplateValue[] | null | undefined;
  return {
    ensureAscii: option(0, "ensure_ascii")?.value === true,
    indent:
      typeof indent === "number" ? " ".repeat(indent) : typeof indent === "string" ? indent : null,
    separators: Array.isArray(separators)
      ? [String(separators[0]?.value ?? ", "), String(separators[1]?.value ?? ": ")]
      : null,
    sortKeys: option(3, "sort_keys")?.value === true,
  };
}

function rangeFunction(args: readonly TemplateValue[]): TemplateValue {
  const [first = 0, second, step = 1] = args.map((arg) => Number(arg.value));
  const start = second === undefined ? 0 : first;
  const stop = second ?? first;
  const items: TemplateValue[] = [];
  if (step === 0) throw new Error("range() step must not be zero");
  for (let i = start; step > 0 ? i < stop : i > stop; i += step) items.push(integerValue(i));
  return arrayValue(items);
}

const globals: ReadonlyMap<string, TemplateValue> = new Map<string, TemplateValue>([
  ["true", booleanValue(true)],
  ["false", booleanValue(false)],
  ["none", nullValue],
  ["True", booleanValue(true)],
  ["False", booleanValue(false)],
  ["None", nullValue],
  ["range", functionValue(rangeFunction)],
  [
    "raise_exception",
    functionValue(([message]) => {
      throw new TemplateRefusal(String(message?.value ?? "no reason given"));
    }),
  ],
  [
    "__gimbal_tojson",
    functionValue(([operand, ...rest]) =>
      stringValue(dumpJson(operand ?? nullValue, dumpOptions(rest))),
    ),
  ],
  ["__gimbal_text", functionValue((values) => stringValue(values.map(pythonText).join("")))],
  ["__gimbal_strip", stripFunction(true, true)],
  ["__gimbal_lstrip", stripFunction(true, false)],
  ["__gimbal_rstrip", stripFunction(false, true)],
]);

/**
 * Compiles a chat template.
 * @throws {GimbalError} `template-unsupported` naming the syntax, filter or test that is not supported.
 */
export function compileTemplate(source: string): ChatTemplate {
  let plain: unknown;
  let marked: unknown;
  try {
    plain = new Template(source).parsed;
    marked = new Template(source).parsed;
  } catch (error) {
    throw unsupported("cannot be parsed", error);
  }
  checkFilters(plain);
  rewriteTemplate(plain, false);
  rewriteTemplate(marked, true);
  return {
    render(variables, owners) {
      const environment = new Environment();
      const declare = (name: string, value: TemplateValue): void => {
        environment.variables.set(name, value as never);
      };
      for (const [name, value] of globals) declare(name, value);
      for (const [name, value] of variables) declare(name, value);
      if (owners !== undefined) {
        declare(
          "__gimbal_mark",
          functionValue(([value]) => {
            const owner = value === undefined ? undefined : owners.get(value);
            return owner === undefined ? nullValue : stringValue(ownerMark(owner));
          }),
        );
        declare(
          "__gimbal_unmark",
          functionValue(([value]) =>
            value !== undefined && owners.has(value) ? stringValue(ownerMark("")) : nullValue,
          ),
        );
      }
      try {
        const program = (owners === undefined ? plain : marked) as never;
        return String(new Interpreter(environment).run(program).value);
      } catch (error) {
        if (error instanceof TemplateRefusal) {
          throw new GimbalError(
            "invalid-request",
            `The chat template refuses this conversation: ${oneLine(error)}.`,
            { cause: error },
          );
        }
        throw unsupported("cannot be rendered", error);
      }
    },
  };
}
