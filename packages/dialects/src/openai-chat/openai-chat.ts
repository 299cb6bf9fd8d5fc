/**
 * OpenAI Chat Completions: `POST .../chat/completions`, `GET .../models`.
 */
import type { Dialect, DialectRoute } from "../dialect.js";
import { parseChatRequest } from "./parse-request.js";
import { createChatStreamWriter, writeChatModels, writeChatTurn } from "./write.js";
import { writeChatError } from "./write-error.js";

function route(method: string, path: string): DialectRoute | null {
  const clean = path.replace(/\/+$/, "");
  if (method === "POST" && clean.endsWith("/chat/completions")) return { kind: "generate" };
  if (method === "GET" && clean.endsWith("/models")) return { kind: "models" };
  return null;
}

/**
 * The `openai-chat` dialect.
 * @example
 * openAiChat.route("POST", "/s/key/v1/chat/completions"); // { kind: "generate" }
 */
export const openAiChat: Dialect = {
  id: "openai-chat",
  route,
  parseRequest: parseChatRequest,
  createStreamWriter: createChatStreamWriter,
  writeTurn: writeChatTurn,
  writeError: writeChatError,
  writeModels: writeChatModels,
};
