/**
 * Members and families: a member is one full parameter tuple of a family, a family draws members and knows how an
 * honest expert solves them.
 *
 * Law: everything an attempt needs and the instruction does not say is visible in some tool result.
 */
import type { Draw } from "./draw.js";
import type { ExpertObservation, ExpertTurn } from "./expert-turn.js";

/** One small repository task before it is worded. Plain data; its JSON is its identity. */
export interface DeskMember {
  /** Which group of phrasings fits. */
  readonly variant: string;
  /** Values for the placeholders of the phrasings. */
  readonly fields: Readonly<Record<string, string>>;
  /** The workspace, relative path to text. */
  readonly files: Readonly<Record<string, string>>;
  /** Files whose text must differ from the workspace in the end, relative path to wanted text. */
  readonly wanted: Readonly<Record<string, string>>;
  /** Files the agent may read and whose changes never reach grading. */
  readonly protectedPaths: readonly string[];
  /** Hidden tests, run in a clean copy; empty when the file state decides alone. */
  readonly gradingFiles: Readonly<Record<string, string>>;
}

/** One kind of task. */
export interface DeskFamily {
  readonly name: string;
  /** False for the family that no training split ever draws from. */
  readonly trained: boolean;
  /** One sentence for tables. */
  readonly summary: string;
  /** Phrasings by variant, with `{field}` placeholders. */
  readonly phrasings: Readonly<Record<string, readonly string[]>>;
  /** Draws one member. */
  draw(draw: Draw): DeskMember;
  /** The next expert turn, from the fields of the instruction and what tools answered so far. */
  next(
    fields: Readonly<Record<string, string>>,
    observations: readonly ExpertObservation[],
  ): ExpertTurn;
  /** The same in the hasty habit, in families that invite a short cut. */
  nextHasty?(
    fields: Readonly<Record<string, string>>,
    observations: readonly ExpertObservation[],
  ): ExpertTurn;
}
