/**
 * Instructions: phrasings with placeholders, rendered and parsed by the same templates.
 *
 * Law: parseInstruction(renderInstruction(family, variant, phrasing, fields)) gives the family and the fields back.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { DeskFamily } from "./member.js";

/** What an instruction says. */
export interface ParsedInstruction {
  readonly family: DeskFamily;
  readonly variant: string;
  readonly phrasing: number;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Words an instruction.
 * @throws {GimbalError} `invalid-request` for an unknown variant, phrasing or a missing field.
 */
export function renderInstruction(
  family: DeskFamily,
  variant: string,
  phrasing: number,
  fields: Readonly<Record<string, string>>,
): string {
  const template = family.phrasings[variant]?.[phrasing];
  if (template === undefined) {
    throw new GimbalError(
      "invalid-request",
      `Family ${family.name} has no phrasing ${phrasing} of variant "${variant}"; use one of ${Object.keys(family.phrasings).join(", ")}.`,
    );
  }
  return template.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = fields[name];
    if (value === undefined) {
      throw new GimbalError(
        "invalid-request",
        `The phrasing needs the field "${name}"; found ${Object.keys(fields).join(", ") || "none"}. Add it.`,
      );
    }
    return value;
  });
}

/** Reads an instruction back, as an expert that knows the phrasings would; null when no phrasing fits. */
export function parseInstruction(
  families: readonly DeskFamily[],
  instruction: string,
): ParsedInstruction | null {
  for (const family of families) {
    for (const [variant, phrasings] of Object.entries(family.phrasings)) {
      for (const [phrasing, template] of phrasings.entries()) {
        const match = templateToPattern(template).exec(instruction);
        if (match === null) continue;
        return { family, variant, phrasing, fields: { ...match.groups } };
      }
    }
  }
  return null;
}

function templateToPattern(template: string): RegExp {
  const escaped = template.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replace(/\{(\w+)\}/g, "(?<$1>[a-z0-9/.]+)")}$`);
}
