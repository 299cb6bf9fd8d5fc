/**
 * Branded identifiers. They are plain strings at run time; the brand stops one kind from being passed as another.
 */
declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** One try at a task. */
export type AttemptId = Branded<"AttemptId">;
/** One captured model call. */
export type CallId = Branded<"CallId">;
/** The gateway's side of an attempt. */
export type SessionId = Branded<"SessionId">;
/** One task. */
export type TaskId = Branded<"TaskId">;
/** One group of attempts that are compared with each other. */
export type GroupId = Branded<"GroupId">;
/** One set of weights. */
export type PolicyVersion = Branded<"PolicyVersion">;
/** The address of stored bytes: `sha256-<hex>`. */
export type BlobId = Branded<"BlobId">;

/** Brands a string as an id of the kind the caller names: `asId<CallId>("c1")`. */
export function asId<Id extends Branded<string>>(text: string): Id {
  return text as Id;
}
