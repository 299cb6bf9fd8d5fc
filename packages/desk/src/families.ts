/**
 * The families of the suite, in the order of tables and of round-robin draws.
 */
import { answerLog } from "./families/answer-log.js";
import { bumpPort } from "./families/bump-port.js";
import { changeSetting } from "./families/change-setting.js";
import { copySetting } from "./families/copy-setting.js";
import { fixOperator } from "./families/fix-operator.js";
import { moveValue } from "./families/move-value.js";
import { renameFunction } from "./families/rename-function.js";
import { revertChange } from "./families/revert-change.js";
import type { DeskFamily } from "./member.js";

/** All families; those with `trained: false` belong to the split `heldout-family` alone. */
export const deskFamilies: readonly DeskFamily[] = [
  fixOperator,
  renameFunction,
  moveValue,
  answerLog,
  changeSetting,
  revertChange,
  bumpPort,
  copySetting,
];
