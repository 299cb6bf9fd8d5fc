/**
 * Bytes to lines, at LF only.
 *
 * Law: the lines do not depend on how the bytes were cut into chunks. (`readline` also cuts at U+2028, which is legal
 * inside JSON.)
 */

/** Takes chunks, gives lines. */
export interface LineSplitter {
  push(chunk: Uint8Array): void;
  /** Gives the unfinished last line, when there is one. */
  end(): void;
}

/** Creates a splitter; a carriage return before LF is dropped. */
export function createLineSplitter(onLine: (line: string) => void): LineSplitter {
  const decoder = new TextDecoder();
  let parts: string[] = [];
  const take = (text: string): void => {
    const pieces = text.split("\n");
    for (const [index, piece] of pieces.entries()) {
      parts.push(piece);
      if (index === pieces.length - 1) break;
      const line = parts.join("");
      parts = [];
      onLine(line.endsWith("\r") ? line.slice(0, -1) : line);
    }
  };
  return {
    push: (chunk) => take(decoder.decode(chunk, { stream: true })),
    end: () => {
      take(decoder.decode());
      const rest = parts.join("");
      parts = [];
      if (rest !== "") onLine(rest);
    },
  };
}
