/**
 * Parsers of option values for commander. A bad value is bad usage: exit code 2.
 */
import { InvalidArgumentError } from "commander";

function parseNumberText(text: string): number {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim()) ? Number(text) : Number.NaN;
}

/** A whole number from 1. */
export function parseCount(text: string): number {
  const value = parseNumberText(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new InvalidArgumentError("Expected a whole number from 1.");
  }
  return value;
}

/** Attempts of a group: a whole number from 2, because one has nothing to be compared with. */
export function parseGroupSize(text: string): number {
  const value = parseNumberText(text);
  if (!Number.isSafeInteger(value) || value < 2) {
    throw new InvalidArgumentError("Expected a whole number from 2.");
  }
  return value;
}

/** Threads of the CPU backend. */
export function parseThreads(text: string): number {
  const value = parseNumberText(text);
  if (!Number.isSafeInteger(value) || value < 1 || value > 256) {
    throw new InvalidArgumentError("Expected a whole number from 1 to 256.");
  }
  return value;
}

/** A whole number from 0. */
export function parseNatural(text: string): number {
  const value = parseNumberText(text);
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new InvalidArgumentError("Expected a whole number from 0.");
  }
  return value;
}

/** A 32-bit unsigned seed. */
export function parseSeed(text: string): number {
  const value = parseNumberText(text);
  if (!Number.isSafeInteger(value) || value < 0 || value >= 2 ** 32) {
    throw new InvalidArgumentError("Expected a whole number from 0 to 4294967295.");
  }
  return value;
}

/** A port; 0 = any free one. */
export function parsePort(text: string): number {
  const value = parseNumberText(text);
  if (!Number.isSafeInteger(value) || value < 0 || value > 65_535) {
    throw new InvalidArgumentError("Expected a port from 0 to 65535; 0 takes any free one.");
  }
  return value;
}

/** A finite number from 0. */
export function parseNotNegative(text: string): number {
  const value = parseNumberText(text);
  if (!Number.isFinite(value) || value < 0) {
    throw new InvalidArgumentError("Expected a number from 0.");
  }
  return value;
}

/** A finite number above 0. */
export function parsePositive(text: string): number {
  const value = parseNumberText(text);
  if (!Number.isFinite(value) || value <= 0) {
    throw new InvalidArgumentError("Expected a number above 0.");
  }
  return value;
}
