/**
 * Reads a request body with a limit on its size and on what one session may hold in memory.
 */
import type { IncomingMessage } from "node:http";
import { GimbalError } from "@gimbal-rl/core";

/** A body somewhat above the limit is read and thrown away, so that the client sees the error and no reset. */
const drainFactor = 4;

/** Counts bytes held for a session. */
export interface BodyBudget {
  take(bytes: number): boolean;
}

/**
 * Reads the whole body.
 * @throws {GimbalError} `invalid-request` (too large, encoded), `unavailable` (session holds too much), `aborted`.
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  budget: BodyBudget,
): Promise<Buffer> {
  const tooLarge = (): GimbalError =>
    new GimbalError(
      "invalid-request",
      `The request body is larger than ${maxBytes} bytes. Send a shorter conversation.`,
    );
  const encoding = request.headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") {
    throw new GimbalError(
      "invalid-request",
      `content-encoding "${encoding}" is not accepted. Send the body uncompressed.`,
    );
  }
  const declared = Number(request.headers["content-length"] ?? 0);
  if (declared > maxBytes * drainFactor) throw tooLarge();
  const chunks: Buffer[] = [];
  let size = 0;
  let isOverBudget = false;
  try {
    // Leaving the loop must not destroy the socket: the client still has to read the error.
    const incoming: AsyncIterable<Buffer> = request.iterator({ destroyOnReturn: false });
    for await (const chunk of incoming) {
      size += chunk.length;
      if (size > maxBytes * drainFactor) throw tooLarge();
      if (size > maxBytes || isOverBudget) {
        chunks.length = 0;
        continue;
      }
      isOverBudget = !budget.take(chunk.length);
      chunks.push(chunk);
    }
  } catch (error) {
    if (GimbalError.is(error)) throw error;
    throw new GimbalError("aborted", "The client left while it was sending the request.", {
      cause: error,
    });
  }
  if (size > maxBytes) throw tooLarge();
  if (isOverBudget) {
    throw new GimbalError(
      "unavailable",
      "Too many large requests of this session are open at once.",
      { details: { ownLimit: true } },
    );
  }
  return Buffer.concat(chunks, size);
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });

/**
 * The text of a request body.
 *
 * @throws {GimbalError} `invalid-request` when the bytes are not UTF-8.
 */
export function bodyText(body: Uint8Array): string {
  try {
    return strictUtf8.decode(body);
  } catch (error) {
    throw new GimbalError("invalid-request", "The request body is not UTF-8 text.", {
      cause: error,
    });
  }
}
