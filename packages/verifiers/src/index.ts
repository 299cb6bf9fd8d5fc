/** Scores an attempt with evidence and a failure class. */
export { createAll } from "./all.js";
export { createCommandSucceeds } from "./command-succeeds.js";
export { createVerifiers, type VerifiersOptions } from "./create-verifiers.js";
export { type FileExpectation, fileStateEquals } from "./file-state-equals.js";
export {
  buildGradingFiles,
  createGradingCopy,
  type GradingCopyOptions,
  type GradingFiles,
  isProtectedPath,
} from "./grading-copy.js";
export { locateNode, type NodeLocation } from "./node-location.js";
export { createNodeTestsPass } from "./node-tests-pass.js";
export { normaliseText } from "./normalise-text.js";
export { evidence, judge, unscored } from "./verdict.js";
