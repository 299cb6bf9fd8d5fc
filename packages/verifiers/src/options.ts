/**
 * Reading a verifier's plain-data options.
 *
 * Law: a wrong option is an error that names it; nothing is guessed, nothing unknown is ignored.
 */
import { GimbalError } from "@gimbal-rl/core";

/** Reads the options of one verifier kind. */
export interface OptionReader {
  string(name: string): string | undefined;
  boolean(name: string): boolean | undefined;
  /** A positive number. */
  number(name: string): number | undefined;
  strings(name: string): readonly string[] | undefined;
  record(name: string): Readonly<Record<string, unknown>> | undefined;
  list(name: string): readonly unknown[] | undefined;
  /** Throws when an option was given that none of the calls above asked for. */
  finish(): void;
  /** Makes the error for a bad option. */
  fail(name: string, expected: string): GimbalError;
}

/** @throws {GimbalError} `config-invalid` from every method, on a value of the wrong type. */
export function readOptions(
  kind: string,
  options: Readonly<Record<string, unknown>>,
): OptionReader {
  const known = new Set<string>();
  const fail = (name: string, expected: string): GimbalError =>
    new GimbalError(
      "config-invalid",
      `Verifier ${kind}: option "${name}" is ${JSON.stringify(options[name]) ?? "missing"}; expected ${expected}.`,
      { boundary: "verifier", details: { kind, option: name } },
    );
  const take = <T>(
    name: string,
    expected: string,
    is: (value: unknown) => value is T,
  ): T | undefined => {
    known.add(name);
    const value = options[name];
    if (value === undefined) return undefined;
    if (!is(value)) throw fail(name, expected);
    return value;
  };
  return {
    string: (name) => take(name, "a string", isString),
    boolean: (name) => take(name, "true or false", isBoolean),
    number: (name) => take(name, "a number above 0", isPositive),
    strings: (name) => take(name, "a list of strings", isStrings),
    record: (name) => take(name, "an object", isRecord),
    list: (name) => take(name, "a list", isList),
    finish: () => {
      for (const name of Object.keys(options)) {
        if (!known.has(name)) throw fail(name, `one of: ${[...known].join(", ")}`);
      }
    },
    fail,
  };
}

const isString = (value: unknown): value is string => typeof value === "string";
const isBoolean = (value: unknown): value is boolean => typeof value === "boolean";
const isPositive = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value) && value > 0;
const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);
const isStrings = (value: unknown): value is readonly string[] =>
  isList(value) && value.every(isString);

/** Whether a value is a plain object. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
