/**
 * What one call answers, kept as text until a client has all of it. Any number of clients copy it from the start.
 *
 * Law: every client of a call gets the same bytes (keep-alives apart), and they are the bytes that are stored.
 */

/** Status and headers of an answer. */
export interface OutputHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** How an answer ended. `cut` = the connection must be broken, because a clean end would read as success. */
export type OutputEnd = "complete" | "cut";

/** An answer in the making. */
export class ReplayOutput {
  head: OutputHead | null = null;
  readonly chunks: string[] = [];
  end: OutputEnd | null = null;
  /** Text that keeps a connection alive; null when the protocol has none. */
  heartbeat: (() => string) | null = null;
  readonly #listeners = new Set<() => void>();

  get isEnded(): boolean {
    return this.end !== null;
  }

  start(head: OutputHead): void {
    this.head = head;
    this.#notify();
  }

  write(text: string): void {
    if (text === "") return;
    this.chunks.push(text);
    this.#notify();
  }

  finish(end: OutputEnd): void {
    this.end = end;
    this.#notify();
  }

  /** The whole text so far. */
  text(): string {
    return this.chunks.join("");
  }

  /** Calls back after each change; returns the function that stops it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
