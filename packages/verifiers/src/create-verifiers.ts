/**
 * The registry of the verifiers in this package, by kind. Callers add their own to the Map they get.
 */
import type { Verifier } from "@gimbal-rl/core";
import { createAll } from "./all.js";
import { createCommandSucceeds } from "./command-succeeds.js";
import { fileStateEquals } from "./file-state-equals.js";
import { locateNode } from "./node-location.js";
import { createNodeTestsPass } from "./node-tests-pass.js";

/** Options of {@link createVerifiers}. */
export interface VerifiersOptions {
  /** Host path of the Node that grading uses, for example `process.execPath`. Default: the one on the sandbox's PATH, if any. */
  readonly nodePath?: string;
  /** Gives an unguessable text each time. Default: `crypto.randomUUID`. */
  readonly createNonce?: () => string;
}

/**
 * Makes the registry.
 *
 * @example
 * const verifiers = createVerifiers({ nodePath: process.execPath });
 * const verdict = await verifiers.get(task.verifier.kind)?.verify(input, signal);
 */
export function createVerifiers(options: VerifiersOptions = {}): Map<string, Verifier> {
  const node = locateNode(options.nodePath);
  const createNonce = options.createNonce ?? (() => globalThis.crypto.randomUUID());
  const registry = new Map<string, Verifier>();
  for (const verifier of [
    createCommandSucceeds(node),
    createNodeTestsPass(node, createNonce),
    fileStateEquals,
    createAll(registry),
  ]) {
    registry.set(verifier.kind, verifier);
  }
  return registry;
}
