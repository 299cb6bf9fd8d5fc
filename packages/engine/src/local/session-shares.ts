/**
 * Prompt rows served to each session that has running calls, so that none waits behind the long prompts of another.
 *
 * Law: whoever was served least comes next. A session that joins starts level with the least served one.
 */

/** Rows served per session. */
export class SessionShares {
  readonly #served: Map<string, number> = new Map();

  /** A session gets its first running call. */
  join(sessionId: string): void {
    if (this.#served.has(sessionId)) return;
    this.#served.set(sessionId, this.#served.size > 0 ? Math.min(...this.#served.values()) : 0);
  }

  /** A session has no running call any more. */
  leave(sessionId: string): void {
    this.#served.delete(sessionId);
  }

  add(sessionId: string, rows: number): void {
    this.#served.set(sessionId, (this.#served.get(sessionId) ?? 0) + rows);
  }

  /** Index of the member whose session was served least; the first of equals. -1 when there is none. */
  leastServed(members: readonly { readonly sessionId: string }[]): number {
    let least = -1;
    let leastRows = Number.POSITIVE_INFINITY;
    members.forEach(({ sessionId }, index) => {
      const rows = this.#served.get(sessionId) ?? 0;
      if (rows < leastRows) {
        least = index;
        leastRows = rows;
      }
    });
    return least;
  }

  clear(): void {
    this.#served.clear();
  }
}
